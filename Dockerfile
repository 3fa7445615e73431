# What a worker of Flink, Spark or Dataflow runs (docs/scale.md), and a worker pool on any machine.
#
#   docker build -t REGISTRY/kernelquarry-worker .
#   docker build -t REGISTRY/kernelquarry-gpu-worker --build-arg TORCH_INDEX=https://download.pytorch.org/whl/cu130 .
FROM apache/beam_python3.11_sdk:2.77.0 AS beam

FROM python:3.11-slim
ARG TORCH=2.13.0
ARG TORCH_INDEX=https://download.pytorch.org/whl/cpu
# Triton compiles a C file for each kernel's launcher.
RUN apt-get update && apt-get install -y --no-install-recommends gcc libc6-dev && rm -rf /var/lib/apt/lists/*
WORKDIR /opt/kernelquarry
COPY requirements.lock ./
RUN pip install --no-cache-dir --no-deps --only-binary=:all: --require-hashes -r requirements.lock \
 && pip install --no-cache-dir --index-url "$TORCH_INDEX" "torch==$TORCH"
COPY . .
RUN pip install --no-cache-dir --no-deps --no-build-isolation .
COPY --from=beam /opt/apache/beam /opt/apache/beam
ENTRYPOINT ["/opt/apache/beam/boot"]
