#!/usr/bin/env python3
"""Reads a topic of Highwater from Kafka and prints the records that count, one JSON object per line.

    pip install confluent-kafka==2.16.1 fastavro==1.13.1
    python3 topics.py changes.recalls --brokers localhost:29092 --api http://127.0.0.1:8080
    python3 topics.py changes.recalls --state recalls.json      # continues where it stopped
    python3 topics.py recalls --until-end                       # facts; stops at the end
    python3 topics.py recalls --registry http://localhost:8081  # values framed by a schema registry

The program needs only the schemas, which the API serves at /schemas/ or the registry has. The classes Changes and Facts skip records that were appended
twice or lost a race, so that each change is printed once and in order: see ops/docs/reference/topics.md.
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
REGISTERED = b"\x00"  # a schema registry's frame; then the schema's id in the registry in 4 bytes, big endian
REGISTERED_BYTES = 5
ZEROS = bytes(32)


class Schemas:
    """Fetches schemas by fingerprint from the API and by id from a registry, each once. A topic may hold values of both kinds."""

    def __init__(self, api, registry=""):
        self.api, self.registry = api.rstrip("/"), registry.rstrip("/")
        self.known = {}

    def read(self, value):
        """Returns the record in a framed value, and its datum."""
        value = value or b""
        if value.startswith(FRAME) and len(value) >= FRAME_BYTES:
            name, datum, fetch = value[2:FRAME_BYTES], value[FRAME_BYTES:], self.fetch
        elif value.startswith(REGISTERED) and len(value) >= REGISTERED_BYTES and self.registry:
            name, datum, fetch = value[1:REGISTERED_BYTES], value[REGISTERED_BYTES:], self.fetch_by_id
        else:
            raise ValueError("not in single-object encoding, and no registry is given (--registry)")
        if name not in self.known:
            self.known[name] = fetch(name)
        return fastavro.schemaless_reader(io.BytesIO(datum), self.known[name]), datum

    def fetch_by_id(self, id):
        url = f"{self.registry}/schemas/ids/{int.from_bytes(id, 'big')}"
        try:
            with urllib.request.urlopen(url, timeout=10) as answer:
                return fastavro.parse_schema(json.loads(json.load(answer)["schema"]))
        except urllib.error.HTTPError as error:
            if error.code == 404:
                raise ValueError(f"{url} is not there") from error
            raise

    def fetch(self, fingerprint):
        # The address has the most significant byte first; the frame has it last.
        url = f"{self.api}/schemas/{fingerprint[::-1].hex()}"
        with urllib.request.urlopen(url, timeout=10) as answer:
            schema = json.load(answer)
        canonical = fastavro.schema.to_parsing_canonical_form(schema)
        if fastavro.schema.fingerprint(canonical, "CRC-64-AVRO") != fingerprint.hex():
            raise ValueError(f"{url} is another schema")
        return fastavro.parse_schema(schema)


class Changes:
    """The rule of change topics: take the record that extends the last one taken, by seq and hash; skip everything else."""

    def __init__(self, seq=0, hash=ZEROS):
        self.seq, self.hash = seq, hash

    def takes(self, change, datum):
        if change["seq"] != self.seq + 1 or change["prevHash"] != self.hash:
            return False
        self.seq, self.hash = change["seq"], hashlib.sha256(datum).digest()
        return True


class Facts:
    """The rule of fact topics: the same for each key, by version and id."""

    def __init__(self):
        self.heads = {}

    def takes(self, fact, _datum):
        version, id = self.heads.get(fact["key"], (0, ZEROS))
        if fact["version"] != version + 1 or fact["prevHash"] != id:
            return False
        self.heads[fact["key"]] = (fact["version"], fact["id"])
        return True


def to_json(value):
    """Converts values that JSON cannot represent."""
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
    parser = argparse.ArgumentParser(description="Reads a topic of Highwater from Kafka and prints the records that count.")
    parser.add_argument("topic", help="changes.recalls, recalls … (/asyncapi.json lists them)")
    parser.add_argument("--brokers", default="localhost:29092")
    parser.add_argument("--api", default="http://127.0.0.1:8080", help="URL of the API, which serves the schemas")
    parser.add_argument("--prefix", default="", help="prefix of the topic's name on the broker (kafka.topic_prefix)")
    parser.add_argument("--registry", default="", help="URL of the schema registry, if values are framed by one")
    parser.add_argument("--state", help="file that stores the position in a change topic")
    parser.add_argument("--until-end", action="store_true", help="stop at the end of the topic")
    options = parser.parse_args()
    is_changes = options.topic.startswith("changes.")
    if options.state and not is_changes:
        parser.error("--state is for change topics: the position in a fact topic is the head of every key")

    # No consumer group: the position is stored together with the results.
    consumer = Consumer({
        "bootstrap.servers": options.brokers,
        "group.id": "unused",
        "enable.auto.commit": False,
        "auto.offset.reset": "error",
        "enable.partition.eof": options.until_end,
    })
    try:
        name = options.prefix + options.topic
        found = consumer.list_topics(name, timeout=10).topics[name]
    except KafkaException as error:
        sys.exit(f"no broker of {options.brokers} answers: {error}")
    if found.error is not None:
        sys.exit(f"topic {name}: {found.error}")
    state = load(options.state)
    rule = Changes(state["seq"], bytes.fromhex(state["hash"])) if is_changes else Facts()
    consumer.assign([TopicPartition(name, partition, state["offset"]) for partition in found.partitions])
    schemas, open_partitions, taken, skipped = Schemas(options.api, options.registry), set(found.partitions), 0, 0
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
                # A foreign record does not extend the chain.
                print(f"{message.partition()}/{message.offset()}: {error}", file=sys.stderr)
                skipped += 1
                continue
            if rule.takes(record, datum):
                print(json.dumps(record, default=to_json, ensure_ascii=False), flush=True)
                taken += 1
                save(options.state, message.offset() + 1, rule)
            else:
                skipped += 1
    except (KeyboardInterrupt, BrokenPipeError):
        pass
    finally:
        consumer.close()
    print(f"{taken} taken, {skipped} skipped", file=sys.stderr)


if __name__ == "__main__":
    main()
