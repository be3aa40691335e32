# One recipe for every part of the lab: PART is the folder or file to run, EXTRA its dependencies in pyproject.toml.
# The layers up to ARG are the same in all images, and a change of the code leaves those of the dependencies alone.
FROM python:3.13-slim
ENV PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore
WORKDIR /lab
COPY pyproject.toml containers/dependencies.py ./
RUN python dependencies.py >/tmp/core.txt && pip install --quiet -r /tmp/core.txt && rm /tmp/core.txt && ln -s /lab/data /data
ARG EXTRA=""
RUN test -z "$EXTRA" || { python dependencies.py $EXTRA >/tmp/extra.txt && pip install --quiet -r /tmp/extra.txt && rm /tmp/extra.txt; }
COPY containers/as-owner containers/healthy ./
COPY chaoslab chaoslab
ARG PART
COPY ${PART} ${PART}
RUN python -m compileall -q . && mkdir -p logs state charts data
ENTRYPOINT ["/lab/as-owner", "python", "-m"]
