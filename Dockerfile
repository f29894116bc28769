# The webhook's image: dependencies by hash, the project itself, no build tools, no root.
ARG BASE=python:3.13-slim

FROM ${BASE} AS build
WORKDIR /src
RUN python3 -m venv /opt/gpu-tiers
COPY requirements/runtime.txt requirements/runtime.txt
RUN /opt/gpu-tiers/bin/pip install --no-cache-dir --require-hashes -r requirements/runtime.txt
COPY pyproject.toml README.md ./
COPY certs certs
COPY webhook webhook
RUN /opt/gpu-tiers/bin/pip install --no-cache-dir --no-deps --no-build-isolation .

FROM ${BASE}
COPY --from=build /opt/gpu-tiers /opt/gpu-tiers
ENV PATH=/opt/gpu-tiers/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
USER 65532:65532
EXPOSE 9443 8080
ENTRYPOINT ["gpu-tiers"]
CMD ["serve"]
