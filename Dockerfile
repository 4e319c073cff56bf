FROM python:3.11-slim-trixie

ENV PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 AGENTSITE_DATA=/data AGENTSITE_HOST=0.0.0.0 AGENTSITE_ALIVE_FILE=/tmp/agentsite.alive
WORKDIR /app
# The client programs of PostgreSQL are for backups, bubblewrap for AGENTSITE_CPYTHON.
RUN apt-get update \
    && apt-get install -y --no-install-recommends bubblewrap postgresql-client \
    && rm -rf /var/lib/apt/lists/*
RUN useradd --uid 10001 --create-home agentsite && install -d -o agentsite -m 700 /data
COPY requirements.lock .
RUN pip install --no-cache-dir --require-hashes --no-deps -r requirements.lock
COPY manage.py ./
COPY agentsite agentsite
COPY tools tools
COPY runs runs
COPY templates templates
RUN python -m compileall -q agentsite tools runs
USER 10001:10001
EXPOSE 8000
CMD ["python", "-m", "uvicorn", "agentsite.asgi:application", "--host", "0.0.0.0", "--port", "8000", "--log-level", "warning", "--timeout-graceful-shutdown", "5"]
