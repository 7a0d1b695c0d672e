# syntax=docker/dockerfile:1
# The one binary, for every role. Built from the lock file; runs as nobody in particular, with its data in /data.

FROM rust:1.95.0-slim-bookworm AS build
# For ring, jemalloc and librdkafka, which are partly C; librdkafka speaks TLS by the system's OpenSSL.
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
# What the signer remembers is kept apart from the data: a backup of the data must not put it back.
ENV HIGHWATER_DATA_DIR=/data HIGHWATER_CHECKPOINTS__MEMORY=/signer HIGHWATER_LISTEN=0.0.0.0:8080
VOLUME /data /signer
EXPOSE 8080
STOPSIGNAL SIGTERM
ENTRYPOINT ["highwater"]
CMD ["serve"]
