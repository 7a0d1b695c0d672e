#!/usr/bin/env python3
"""Reads a topic of Highwater from Kafka and prints what counts, one JSON object a line.

    pip install confluent-kafka==2.16.1 fastavro==1.13.1
    python3 topics.py changes.recalls --brokers localhost:29092 --api http://127.0.0.1:8080
    python3 topics.py changes.recalls --state recalls.json      # goes on where it stopped
    python3 topics.py recalls --until-end                       # facts; stops at the end
    python3 topics.py recalls --registry http://localhost:8081  # where values are framed by a schema registry

Nothing of ours is needed but the schemas that the API serves at /schemas/, or the registry has. The rules that make each change be seen once and in order, whatever
was sent twice or lost a race, are the classes Changes and Facts: see ops/docs/reference/topics.md.
"""

import argparse
import datetime
import hashlib
import io
import json
import os
import sys
import urllib.error
import urllib.request

import fastavro
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

FRAME = b"\xc3\x01"  # Avro's single-object encoding; then the schema's fingerprint in 8 bytes, little endian
FRAME_BYTES = 10
REGISTERED = b"\x00"  # a schema registry's frame; then the schema's id there in 4 bytes, big endian
REGISTERED_BYTES = 5
ZEROS = bytes(32)


class Schemas:
    """Schemas by fingerprint from the API, and by id from a registry, each asked for once. A topic may have values of both kinds."""

    def __init__(self, api, registry=""):
        self.api, self.registry = api.rstrip("/"), registry.rstrip("/")
        self.known = {}

    def read(self, value):
        """The record in a framed value, and its datum."""
        value = value or b""
        if value.startswith(FRAME) and len(value) >= FRAME_BYTES:
            name, datum, fetch = value[2:FRAME_BYTES], value[FRAME_BYTES:], self.fetch
        elif value.startswith(REGISTERED) and len(value) >= REGISTERED_BYTES and self.registry:
            name, datum, fetch = value[1:REGISTERED_BYTES], value[REGISTERED_BYTES:], self.look_up
        else:
            raise ValueError("not framed as a single object, nor by a registry that is known (--registry)")
        if name not in self.known:
            self.known[name] = fetch(name)
        return fastavro.schemaless_reader(io.BytesIO(datum), self.known[name]), datum

    def look_up(self, id):
        url = f"{self.registry}/schemas/ids/{int.from_bytes(id, 'big')}"
        try:
            with urllib.request.urlopen(url, timeout=10) as answer:
                return fastavro.parse_schema(json.loads(json.load(answer)["schema"]))
        except urllib.error.HTTPError as error:
            if error.code == 404:
                raise ValueError(f"{url} is not there") from error
            raise

    def fetch(self, fingerprint):
        # Printed most significant digit first, so the other way round than it stands in the frame.
        url = f"{self.api}/schemas/{fingerprint[::-1].hex()}"
        with urllib.request.urlopen(url, timeout=10) as answer:
            schema = json.load(answer)
        canonical = fastavro.schema.to_parsing_canonical_form(schema)
        if fastavro.schema.fingerprint(canonical, "CRC-64-AVRO") != fingerprint.hex():
            raise ValueError(f"{url} is another schema")
        return fastavro.parse_schema(schema)


class Changes:
    """The one rule of a change topic: take what extends the last one taken, by seq and hash; skip everything else."""

    def __init__(self, seq=0, hash=ZEROS):
        self.seq, self.hash = seq, hash

    def takes(self, change, datum):
        if change["seq"] != self.seq + 1 or change["prevHash"] != self.hash:
            return False
        self.seq, self.hash = change["seq"], hashlib.sha256(datum).digest()
        return True


class Facts:
    """The rule of a fact topic: the same within each key, by version and id."""

    def __init__(self):
        self.heads = {}

    def takes(self, fact, _datum):
        version, id = self.heads.get(fact["key"], (0, ZEROS))
        if fact["version"] != version + 1 or fact["prevHash"] != id:
            return False
        self.heads[fact["key"]] = (fact["version"], fact["id"])
        return True


def plain(value):
    """What JSON has no word for."""
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, datetime.datetime):
        return value.isoformat()
    raise TypeError(type(value))


def load(path):
    if path and os.path.exists(path):
        with open(path) as file:
            return json.load(file)
    return {"offset": 0, "seq": 0, "hash": ZEROS.hex()}


def save(path, offset, rule):
    if path:
        with open(path + ".new", "w") as file:
            json.dump({"offset": offset, "seq": rule.seq, "hash": rule.hash.hex()}, file)
        os.replace(path + ".new", path)


def main():
    parser = argparse.ArgumentParser(description="Reads a topic of Highwater from Kafka and prints what counts.")
    parser.add_argument("topic", help="changes.recalls, recalls … (/asyncapi.json lists them)")
    parser.add_argument("--brokers", default="localhost:29092")
    parser.add_argument("--api", default="http://127.0.0.1:8080", help="where the schemas are")
    parser.add_argument("--prefix", default="", help="what stands before the topic's name on the broker (kafka.topic_prefix)")
    parser.add_argument("--registry", default="", help="the schema registry, where values are framed by one")
    parser.add_argument("--state", help="file that keeps the place in a change topic")
    parser.add_argument("--until-end", action="store_true", help="stop at the end of the topic")
    asked = parser.parse_args()
    is_changes = asked.topic.startswith("changes.")
    if asked.state and not is_changes:
        parser.error("--state is for change topics: the place in a fact topic is the head of every key")

    # No group: the place is kept with what was taken, so that both are of one moment.
    consumer = Consumer({
        "bootstrap.servers": asked.brokers,
        "group.id": "unused",
        "enable.auto.commit": False,
        "auto.offset.reset": "error",
        "enable.partition.eof": asked.until_end,
    })
    try:
        name = asked.prefix + asked.topic
        found = consumer.list_topics(name, timeout=10).topics[name]
    except KafkaException as error:
        sys.exit(f"no broker of {asked.brokers} answers: {error}")
    if found.error is not None:
        sys.exit(f"topic {name}: {found.error}")
    state = load(asked.state)
    rule = Changes(state["seq"], bytes.fromhex(state["hash"])) if is_changes else Facts()
    consumer.assign([TopicPartition(name, partition, state["offset"]) for partition in found.partitions])
    schemas, open_partitions, taken, skipped = Schemas(asked.api, asked.registry), set(found.partitions), 0, 0
    try:
        while open_partitions:
            message = consumer.poll(1.0)
            if message is None:
                continue
            if message.error() is not None:
                if message.error().code() == KafkaError._PARTITION_EOF:
                    open_partitions.discard(message.partition())
                    continue
                if message.error().retriable():
                    continue
                sys.exit(f"reading failed: {message.error()}")
            try:
                record, datum = schemas.read(message.value())
            except ValueError as error:
                # What is no record of ours extends nothing either.
                print(f"{message.partition()}/{message.offset()}: {error}", file=sys.stderr)
                skipped += 1
                continue
            if rule.takes(record, datum):
                print(json.dumps(record, default=plain, ensure_ascii=False), flush=True)
                taken += 1
                save(asked.state, message.offset() + 1, rule)
            else:
                skipped += 1
    except (KeyboardInterrupt, BrokenPipeError):
        pass
    finally:
        consumer.close()
    print(f"{taken} taken, {skipped} skipped", file=sys.stderr)


if __name__ == "__main__":
    main()
