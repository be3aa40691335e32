# One recipe for every part of the lab: PART is the folder to run, ALSO another that it needs, both packages of chaoslab (setup.py), EXTRA their dependencies in pyproject.toml.
# Images share the layers above their ARG, and a change of the code leaves those of the dependencies alone.
ARG PYTHON_IMAGE=python:3.13-slim
FROM $PYTHON_IMAGE AS python
ENV PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 PYTHONSAFEPATH=1 PYTHONPATH=/lab PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore
WORKDIR /lab
COPY pyproject.toml containers/install.py containers/lock.txt ./

# In no image, but lent to the steps that install. It takes a quarter of pip's time, and where it cannot, pip is asked.
FROM python AS uv
RUN python -m pip install --quiet --no-cache-dir --no-compile --target /uv 'uv>=0.5,<1' || mkdir -p /uv

FROM python AS base
RUN --mount=type=bind,from=uv,source=/uv,target=/tmp/uv python install.py

# Compiled once for all images. Whoever owns ./logs reads the code, whatever umask the clone was made with.
FROM base AS code
COPY chaoslab chaoslab
RUN chmod -R a+rX chaoslab && python -m compileall -q chaoslab

FROM base
ARG EXTRA=""
RUN --mount=type=bind,from=uv,source=/uv,target=/tmp/uv test -z "$EXTRA" || python install.py $EXTRA
COPY containers/as-owner containers/healthy ./
COPY --from=code /lab/chaoslab chaoslab
# Where no other package is needed, ALSO is a file that does no harm, and goes again.
ARG ALSO=pyproject.toml
COPY ${ALSO} chaoslab/${ALSO}
ARG PART
COPY ${PART} chaoslab/${PART}
RUN rm -f chaoslab/pyproject.toml && find . ! -perm -a+r -exec chmod a+rX {} + && python -m compileall -q chaoslab && mkdir -p logs state charts data && ln -s /lab/data /data && ln -s /project/.env .env
ENTRYPOINT ["/lab/as-owner", "python", "-m"]
