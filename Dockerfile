# syntax=docker/dockerfile:1
# The binary, for every role. It is built from the lock file and runs as an unprivileged user, with its data in /data.

FROM rust:1.95.0-slim-bookworm AS build
# ring, jemalloc and librdkafka contain C code; librdkafka uses the system's OpenSSL for TLS.
RUN apt-get update \
    && apt-get install --yes --no-install-recommends gcc g++ libc6-dev make perl pkg-config libssl-dev zlib1g-dev \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /source
COPY . .
RUN --mount=type=cache,target=/usr/local/cargo/registry --mount=type=cache,target=/source/target \
    cargo build --release --locked --bin highwater && cp target/release/highwater /highwater

FROM debian:12.8-slim
RUN apt-get update \
    && apt-get install --yes --no-install-recommends ca-certificates libssl3 zlib1g \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --uid 10001 --no-create-home highwater \
    && install --directory --owner highwater --mode 0700 /data /secrets /signer
COPY --from=build /highwater /usr/local/bin/highwater
USER highwater
# The signer's memory is separate from the data, so that restoring a backup of the data does not restore the memory.
ENV HIGHWATER_DATA_DIR=/data HIGHWATER_CHECKPOINTS__MEMORY=/signer HIGHWATER_LISTEN=0.0.0.0:8080
VOLUME /data /signer
EXPOSE 8080
STOPSIGNAL SIGTERM
ENTRYPOINT ["highwater"]
CMD ["serve"]
