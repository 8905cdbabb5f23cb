# The command and the example, for docker-compose.yml: built from the wheel, run as nobody in particular.
FROM python:3.13-slim-bookworm AS build
WORKDIR /source
COPY . .
RUN pip install --no-cache-dir build && python -m build --wheel --installer pip --outdir /wheels

FROM python:3.13-slim-bookworm
COPY --from=build /wheels /wheels
RUN pip install --no-cache-dir /wheels/*.whl && rm -r /wheels \
    && useradd --system --uid 10001 --no-create-home inbox
USER 10001
ENTRYPOINT ["debezium-inbox"]
CMD ["--help"]
