"""Every environment variable that Agentsite reads, with type, default and help.

`NAME_FILE` names a file with the value of `NAME`, as container secrets are.
"""

import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple
from urllib.parse import quote, unquote, urlsplit, urlunsplit

from cryptography.fernet import Fernet
from pydantic import Field, ValidationError, field_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from agentsite.layout import (
    MANAGE_COMMAND,
    get_default_data_folder,
    resolve_data_folder,
)

CommaSeparated = Annotated[tuple[str, ...], NoDecode]
"""A comma-separated list."""

QUEUES = ("live", "schedules", "bulk", "deliveries")
"""Queues of messages: three of runs, and one of webhook deliveries."""

LOOPBACK = ("127.0.0.1", "localhost", "::1")


class Env(BaseSettings):
    """The variables: a field's name in upper case is the variable's name."""

    model_config = SettingsConfigDict(
        frozen=True, extra="ignore", env_ignore_empty=True
    )

    port: int = Field(
        default=8000, ge=1, le=65535, description="Port of the web server."
    )
    agentsite_host: str = Field(
        default="127.0.0.1", description="Address the web server listens on."
    )
    agentsite_url: str = Field(
        default="",
        description="Public address of the dashboard; empty means `http://localhost:PORT`.",
    )
    agentsite_data: Path = Field(
        default=get_default_data_folder(),
        description="Folder for the SQLite database, the broker, keys and logs; "
        "installed as a command, a folder of your user by default.",
    )
    database_url: str = Field(
        default="",
        description="`postgresql://user:password@host/name` or `sqlite:///path`; "
        "empty means SQLite in the data folder.",
    )
    database_password: str = Field(
        default="", description="Password for `DATABASE_URL`, if that has none."
    )
    agentsite_database_pool: int | None = Field(
        default=None,
        ge=1,
        le=1000,
        description="Maximum PostgreSQL connections per process; empty means 20 for a "
        "web server and 12 for a worker.",
    )
    redis_url: str = Field(
        default="",
        description="`redis://host:6379/0` of a Redis or Valkey server; "
        "empty means a private Valkey.",
    )
    redis_password: str = Field(
        default="", description="Password for `REDIS_URL`, if that has none."
    )
    secret_key: str = Field(
        default="",
        description="Signs sessions; empty means a key stored in the data folder.",
    )
    agentsite_encryption_keys: CommaSeparated = Field(
        default=(),
        description="Fernet keys that encrypt stored credentials, newest first; "
        "empty means a key stored in the data folder.",
    )
    debug: bool = Field(
        default=False, description="Show Django's debug pages for errors."
    )
    allowed_hosts: CommaSeparated = Field(
        default=(),
        description="Additional host names that the web server accepts.",
    )
    csrf_trusted_origins: CommaSeparated = Field(
        default=(),
        description="Additional origins, as `https://host`, whose forms are accepted.",
    )
    agentsite_tool_modules: CommaSeparated = Field(
        default=(),
        description="Python modules whose `@tool` functions can be selected.",
    )
    agentsite_extensions: CommaSeparated = Field(
        default=(),
        description="Python modules that register agent kinds, parsers and providers.",
    )
    agentsite_key_variables: CommaSeparated = Field(
        default=(),
        description="Variables from which administrators' providers may read their "
        "key, in addition to names that end in `_KEY` or `_TOKEN`.",
    )
    agentsite_private_hosts: str | None = Field(
        default=None,
        description="Private addresses that may be called, by use (`provider=`, "
        "`tool=`, `mcp=`, `webhook=`), as host:port or CIDR: "
        "`provider=127.0.0.1,::1;webhook=10.0.0.5:8080`. Default if only this machine "
        "can reach the server: `provider=127.0.0.1,::1`.",
    )
    agentsite_sql_connections: str = Field(
        default="",
        description="Databases that SQL tools may read, each as `name=URL` "
        "(`postgresql://` or `sqlite://`), separated by spaces.",
    )
    agentsite_cpython: bool = Field(
        default=False,
        description="Allow Python tools that run CPython in bubblewrap, if a probe "
        "shows that the isolation works.",
    )
    agentsite_mcp_commands: str = Field(
        default="",
        description="Commands that start MCP servers over stdio, each as "
        "`name=VARIABLE=value program argument`, separated by `;`.",
    )
    agentsite_web_search: str = Field(
        default="",
        description="Search service of the tool `web_search`: `searxng=URL`, "
        "`brave` or `tavily`.",
    )
    agentsite_web_search_key: str = Field(
        default="", description="API key of the search service; SearXNG needs none."
    )
    agentsite_lease_seconds: float = Field(
        default=30,
        ge=1,
        le=3600,
        description="Seconds without a heartbeat until another worker gets a run.",
    )
    agentsite_sweep_seconds: float = Field(
        default=5,
        ge=0.2,
        le=3600,
        description="Seconds between sweeps for lost or due runs.",
    )
    agentsite_approval_hours: float = Field(
        default=72,
        ge=0,
        le=8760,
        description="Hours until an approval expires; 0 for never.",
    )
    agentsite_approval_expiry: Literal["reject", "stop"] = Field(
        default="reject",
        description="What happens then: `reject` the call, or `stop` the run.",
    )
    agentsite_worker_threads: int = Field(
        default=2000,
        ge=1,
        le=5000,
        description="Maximum concurrent runs per worker process; at most 50 of them do "
        "anything but wait for a model.",
    )
    agentsite_worker_queues: CommaSeparated = Field(
        default=(),
        description="Queues that a worker serves: `live`, `schedules`, `bulk`, "
        "`deliveries`; empty means all.",
    )
    agentsite_agent_depth: int = Field(
        default=3,
        ge=0,
        le=20,
        description="Maximum nesting of sub-agents below a run; 0 for none.",
    )
    agentsite_child_runs: int = Field(
        default=50,
        ge=1,
        le=10_000,
        description="Maximum sub-agent calls per run.",
    )
    agentsite_user_runs: int = Field(
        default=1000,
        ge=0,
        description="Maximum queued and running runs per user; 0 for no limit.",
    )
    agentsite_user_concurrent_runs: int = Field(
        default=0,
        ge=0,
        description="Maximum runs per user that workers execute at once, the others "
        "wait; 0 for no limit.",
    )
    agentsite_user_streams: int = Field(
        default=100,
        ge=0,
        description="Maximum open live streams per user and web process; 0 for no "
        "limit.",
    )
    agentsite_sign_in_attempts: int = Field(
        default=20,
        ge=0,
        description="Failed sign-ins per client address until further ones are refused "
        "for 15 minutes; 0 for no limit.",
    )
    agentsite_demo: bool = Field(
        default=True,
        description="Create the demo provider and agents on the first start.",
    )
    agentsite_metrics_token: str = Field(
        default="",
        description="Token that `/metrics` requires, at least 16 characters; empty "
        "means no `/metrics`.",
    )
    agentsite_email_url: str = Field(
        default="",
        description="Mail server that sends notifications: "
        "`smtp+tls://user:password@host:587` (STARTTLS), `smtps://` (TLS) or `smtp://` "
        "(not encrypted); empty means no e-mail.",
    )
    agentsite_email_from: str = Field(
        default="",
        description="Sender of notifications; empty means `agentsite@` and the host of "
        "the dashboard.",
    )
    agentsite_otlp_endpoint: str = Field(
        default="",
        description="OpenTelemetry collector that ended runs are exported to as "
        "traces, by OTLP over HTTP, such as `http://localhost:4318`; empty means none.",
    )
    agentsite_otlp_headers: str = Field(
        default="",
        description="Headers of these requests, as `name=value,name=value`, values "
        "percent-encoded.",
    )
    agentsite_otlp_content: bool = Field(
        default=False,
        description="Include messages, arguments and results in these traces, with "
        "secrets masked.",
    )
    agentsite_trace_import_daily_spans: int = Field(
        default=100_000,
        ge=0,
        description="Spans that one person's programs may send to `/v1/traces` in one "
        "day (UTC); 0 switches the import of traces off.",
    )
    agentsite_log_level: str = Field(
        default="INFO", description="`DEBUG`, `INFO`, `WARNING` or `ERROR`."
    )
    agentsite_log_format: Literal["text", "json"] = Field(
        default="text",
        description="Lines of the log: `text` as `key=value`, or `json`.",
    )
    agentsite_log_megabytes: int = Field(
        default=20,
        ge=1,
        le=10_000,
        description="Size at which `make run` rotates each of its log files.",
    )

    @field_validator(
        "agentsite_encryption_keys",
        "allowed_hosts",
        "csrf_trusted_origins",
        "agentsite_tool_modules",
        "agentsite_extensions",
        "agentsite_key_variables",
        "agentsite_worker_queues",
        mode="before",
    )
    @classmethod
    def split_on_commas(cls, text: object) -> object:
        if isinstance(text, str):
            return tuple(part.strip() for part in text.split(",") if part.strip())
        return text

    @field_validator("agentsite_data")
    @classmethod
    def resolve_data(cls, path: Path) -> Path:
        return resolve_data_folder(path)

    @field_validator("agentsite_url")
    @classmethod
    def check_url(cls, url: str) -> str:
        if url and not re.fullmatch(r"https?://[^/\s]+(/\S*)?", url):
            raise ValueError(
                "it must begin with http:// or https:// and contain a host"
            )
        return url.rstrip("/")

    @field_validator("redis_url")
    @classmethod
    def check_redis(cls, url: str) -> str:
        """Refuse schemes that redis-py does not support."""
        if url and not url.startswith(("redis://", "rediss://", "unix://")):
            raise ValueError("it must begin with redis://, rediss:// or unix://")
        _ = urlsplit(url).port  # raises ValueError if the port is not a number
        return url

    @field_validator("agentsite_encryption_keys")
    @classmethod
    def check_keys(cls, keys: tuple[str, ...]) -> tuple[str, ...]:
        """Refuse invalid keys before a secret is entered."""
        if not all(is_fernet_key(key) for key in keys):
            raise ValueError(
                "each key must be 32 bytes in URL-safe base64, as created by "
                f"`{MANAGE_COMMAND} rotate_keys --new-key`"
            )
        return keys

    @field_validator("allowed_hosts")
    @classmethod
    def check_hosts(cls, hosts: tuple[str, ...]) -> tuple[str, ...]:
        """Refuse URLs instead of host names: no request would match them."""
        for host in hosts:
            if "/" in host:
                raise ValueError(f"{host!r} must be a host name, without http:// or /")
        return hosts

    @field_validator("agentsite_tool_modules", "agentsite_extensions")
    @classmethod
    def check_modules(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        for name in names:
            if not all(part.isidentifier() for part in name.split(".")):
                raise ValueError(f"{name!r} is not the name of a Python module")
        return names

    @field_validator("agentsite_worker_queues")
    @classmethod
    def check_queues(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        for name in names:
            if name not in QUEUES:
                known = ", ".join(QUEUES)
                raise ValueError(f"{name!r} is not a queue; there are {known}")
        return names

    @field_validator("csrf_trusted_origins")
    @classmethod
    def check_origins(cls, origins: tuple[str, ...]) -> tuple[str, ...]:
        """Refuse host names without a scheme, which Django would ignore."""
        for origin in origins:
            if not origin.startswith(("http://", "https://")):
                raise ValueError(f"{origin!r} must begin with http:// or https://")
        return origins

    @field_validator("agentsite_metrics_token")
    @classmethod
    def check_metrics_token(cls, token: str) -> str:
        if token and not re.fullmatch(r"[!-~]{16,}", token):
            raise ValueError(
                "it must have at least 16 characters, ASCII and without spaces, as "
                "created by `openssl rand -hex 24`"
            )
        return token

    @field_validator("agentsite_email_url")
    @classmethod
    def check_email_url(cls, url: str) -> str:
        parse_email_url(url)
        return url

    @field_validator("agentsite_email_from")
    @classmethod
    def check_email_from(cls, text: str) -> str:
        if text and not re.fullmatch(r"[^\r\n@]*[^\s@<>]+@[^\s@<>]+>?", text):
            raise ValueError("it must be an e-mail address, or `Name <address>`")
        return text

    @field_validator("agentsite_otlp_endpoint")
    @classmethod
    def check_otlp_endpoint(cls, url: str) -> str:
        """Complete the address as OpenTelemetry's own variables are completed."""
        if not url:
            return ""
        if not re.fullmatch(r"https?://[^/\s@?#]+(/[^\s?#]*)?", url):
            raise ValueError(
                "it must begin with http:// or https:// and contain a host, and no "
                "user name, query or fragment"
            )
        url = url.rstrip("/")
        return url if url.endswith("/v1/traces") else f"{url}/v1/traces"

    @field_validator("agentsite_otlp_headers")
    @classmethod
    def check_otlp_headers(cls, text: str) -> str:
        parse_header_list(text)
        return text

    @field_validator("agentsite_log_level")
    @classmethod
    def check_level(cls, level: str) -> str:
        if level.upper() not in {"DEBUG", "INFO", "WARNING", "ERROR"}:
            raise ValueError("it must be DEBUG, INFO, WARNING or ERROR")
        return level.upper()

    @property
    def redis_address(self) -> str:
        """`redis_url` with the password."""
        parts = urlsplit(self.redis_url)
        if not self.redis_password or "@" in parts.netloc:
            return self.redis_url
        netloc = f":{quote(self.redis_password, safe='')}@{parts.netloc}"
        return urlunsplit(parts._replace(netloc=netloc))

    @property
    def is_local(self) -> bool:
        """Whether, by all that the variables say, only this machine can reach it.

        A reverse proxy on the same machine shows in the public address and hosts.
        """
        public_host = urlsplit(self.public_url).hostname or ""
        hosts = (self.agentsite_host, public_host, *self.allowed_hosts)
        return all(is_loopback(host) for host in hosts)

    @property
    def public_url(self) -> str:
        """The address of the dashboard, without a trailing slash."""
        return self.agentsite_url or f"http://localhost:{self.port}"


def parse_header_list(text: str) -> dict[str, str]:
    """Return the headers of `name=value,name=value`; raise `ValueError`."""
    found = {}
    for part in filter(None, (one.strip() for one in text.split(","))):
        name, equals, value = part.partition("=")
        name, value = name.strip(), unquote(value.strip())
        if not equals or not re.fullmatch(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", name):
            raise ValueError("it must have the form name=value,name=value")
        if not re.fullmatch(r"[\x20-\x7e]*", value):
            raise ValueError(f"the value of {name} must be ASCII without line breaks")
        found[name] = value
    return found


class MailServer(NamedTuple):
    host: str
    port: int
    user: str
    password: str
    starts_tls: bool
    is_tls: bool


MAIL_PORTS = {"smtp": 25, "smtp+tls": 587, "smtps": 465}


def parse_email_url(url: str) -> MailServer:
    """Return the server of `AGENTSITE_EMAIL_URL`; raise `ValueError`."""
    parts = urlsplit(url)
    if not url:
        return MailServer("", 0, "", "", starts_tls=False, is_tls=False)
    if parts.scheme not in MAIL_PORTS or not parts.hostname:
        raise ValueError(
            "it must begin with smtp+tls://, smtps:// or smtp:// and contain a host"
        )
    if parts.path.strip("/") or parts.query:
        raise ValueError("it must end after the host and port")
    return MailServer(
        parts.hostname,
        parts.port or MAIL_PORTS[parts.scheme],
        unquote(parts.username or ""),
        unquote(parts.password or ""),
        starts_tls=parts.scheme == "smtp+tls",
        is_tls=parts.scheme == "smtps",
    )


def is_loopback(host: str) -> bool:
    """Whether a host name, or an address with or without brackets, is this machine."""
    host = host.strip("[]").rstrip(".").lower()
    return host in LOOPBACK or host.endswith(".localhost")


def is_fernet_key(text: str) -> bool:
    try:
        Fernet(text)
    except ValueError:
        return False
    return True


def read_env() -> Env:
    """Read the environment; exit with one sentence per invalid value."""
    try:
        return Env(**read_variable_files(os.environ))
    except UnusableFile as error:
        sys.exit(str(error))
    except ValidationError as error:
        sys.exit("\n".join(format_env_errors(error)))


class UnusableFile(Exception):
    """A variable `NAME_FILE` does not determine the value of `NAME`."""

    def __init__(self, name: str, why: str) -> None:
        super().__init__(f"The variable {name}_FILE cannot be used: {why}.")


def read_variable_files(variables: Mapping[str, str]) -> dict[str, Any]:
    """Return the contents of the files that `NAME_FILE` name, by field."""
    found = {}
    for field in Env.model_fields:
        name = field.upper()
        path = variables.get(f"{name}_FILE")
        if not path:
            continue
        if variables.get(name):
            raise UnusableFile(name, f"{name} is set too. Set one of them")
        try:
            found[field] = Path(path).read_text().strip()
        except (OSError, UnicodeDecodeError) as error:
            why = getattr(error, "strerror", None) or "it is not text"
            raise UnusableFile(name, f"{path}: {why}") from error
    return {field: value for field, value in found.items() if value}


def format_env_errors(error: ValidationError) -> list[str]:
    """Return a sentence per invalid variable, without revealing secrets."""
    said = []
    for problem in error.errors(include_url=False):
        name = str(problem["loc"][0]).upper()
        why = problem["msg"].removeprefix("Value error, ")
        is_secret = re.search("KEY|URL|TOKEN|HEADERS", name)
        value = "" if is_secret else f" is {problem['input']!r}"
        said.append(f"The variable {name}{value or ' is invalid'}: {why}.")
    return said
