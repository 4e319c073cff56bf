FROM python:3.11-slim

ENV PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 AGENTSITE_DATA=/data AGENTSITE_HOST=0.0.0.0 AGENTSITE_ALIVE_FILE=/tmp/agentsite.alive
WORKDIR /app
RUN useradd --create-home agentsite && install -d -o agentsite -m 700 /data
COPY requirements.lock .
RUN pip install --no-cache-dir --require-hashes -r requirements.lock
COPY manage.py ./
COPY agentsite agentsite
COPY tools tools
COPY runs runs
COPY templates templates
RUN python -m compileall -q agentsite tools runs
USER agentsite
VOLUME /data
EXPOSE 8000
CMD ["sh", "-c", "python manage.py prepare >/dev/null && exec python -m uvicorn agentsite.asgi:application --host 0.0.0.0 --port 8000 --log-level warning --timeout-graceful-shutdown 5"]
