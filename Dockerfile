# The webhook's image: dependencies by hash, the project itself, no build tools, no root.
# By digest, for both architectures; .github/dependabot.yml proposes newer ones.
ARG BASE=python:3.13-slim@sha256:7c61056e61ac89e852de05f3dc6fa51a6dd2181797bceed46aa725dd7cb2cd3b

FROM ${BASE} AS build
WORKDIR /src
RUN python3 -m venv /opt/gpu-tiers
COPY requirements/runtime.txt requirements/runtime.txt
RUN /opt/gpu-tiers/bin/pip install --no-cache-dir --no-compile --require-hashes -r requirements/runtime.txt
COPY pyproject.toml README.md ./
COPY certs certs
COPY listener listener
COPY webhook webhook
# Libraries stay as bytecode without their sources (and kubernetes' thousand models without their docstrings): that
# halves the image. The project itself keeps both, for its tracebacks. Its tables are parsed once, here, because nothing
# can be written where the image runs.
RUN /opt/gpu-tiers/bin/pip install --no-cache-dir --no-deps --no-build-isolation . \
 && /opt/gpu-tiers/bin/pip uninstall --yes setuptools pip \
 && python3 -m compileall -q -b -o 2 /opt/gpu-tiers/lib/python3*/site-packages/kubernetes \
 && python3 -m compileall -q -b -x '/(webhook|certs|listener)/' /opt/gpu-tiers/lib \
 && find /opt/gpu-tiers/lib \( -name '*.py' -o -name '*.py[ix]' -o -name '*.pxd' \) \
      -not -path '*/webhook/*' -not -path '*/certs/*' -not -path '*/listener/*' -delete \
 && /opt/gpu-tiers/bin/python -c "import pathlib, webhook; from webhook.objects.data_files import data_file as parse; \
      [parse('webhook', str(file)) for file in pathlib.Path(webhook.__file__).parent.rglob('*.yaml')]" \
 && mkdir /opt/gpu-tiers/python \
 && /opt/gpu-tiers/bin/python -c "from webhook.policy.checkpoint.listen import listener_texts as texts; \
      [open('/opt/gpu-tiers/python/' + name, 'w').write(text) for name, text in texts().items()]"

FROM ${BASE}
COPY --from=build /opt/gpu-tiers /opt/gpu-tiers
# The listener for image volumes: in the folder that pods mount, and at the root, for containerd 2.1 mounts that.
COPY --from=build /opt/gpu-tiers/python /
ENV PATH=/opt/gpu-tiers/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
USER 65532:65532
EXPOSE 9443 8080
ENTRYPOINT ["gpu-tiers"]
CMD ["serve"]
ARG VERSION=""
ARG REVISION=""
LABEL org.opencontainers.image.title="gpu-tiers" \
      org.opencontainers.image.description="Gives every GPU pod a tier, training pods a checkpoint hook, and tenants a quota per tier." \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.source="https://github.com/gpu-tiers/gpu-tiers" \
      org.opencontainers.image.documentation="https://github.com/gpu-tiers/gpu-tiers/blob/main/docs/README.md" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
