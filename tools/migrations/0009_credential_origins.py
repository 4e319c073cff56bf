"""Keep credentials working where they are used with HTTP or another port."""

from urllib.parse import urlsplit

from django.db import migrations


def is_bound_by_name(bindings, host):
    return any(
        host == one.lower() or (one.startswith("*.") and host.endswith(one[1:].lower()))
        for one in bindings
    )


def name_origins_in_use(apps, schema_editor):
    alias = schema_editor.connection.alias
    credentials, tools, servers = (
        apps.get_model("tools", name).objects.using(alias)
        for name in ("Credential", "Tool", "McpServer")
    )
    uses = [
        (pk, config.get("url"))
        for pk, config in tools.filter(kind="http", credential__isnull=False)
        .values_list("credential", "config")
        if isinstance(config, dict)
    ]
    uses += servers.filter(credential__isnull=False).values_list(
        "credential", "url"
    )
    for pk, url in uses:
        try:
            parts = urlsplit(url or "")
            host, port = (parts.hostname or "").rstrip("."), parts.port
        except ValueError:
            continue
        if parts.scheme not in ("http", "https") or not host:
            continue
        if parts.scheme == "https" and port in (None, 443):
            continue
        credential = credentials.get(pk=pk)
        shown = f"[{host}]" if ":" in host else host
        origin = f"{parts.scheme}://{shown}" + (f":{port}" if port else "")
        if is_bound_by_name(credential.hosts, host) and origin not in credential.hosts:
            credential.hosts = [*credential.hosts, origin]
            credential.save(update_fields=["hosts"])


class Migration(migrations.Migration):

    dependencies = [("tools", "0008_mcp_descriptions")]

    operations = [
        migrations.RunPython(name_origins_in_use, migrations.RunPython.noop)
    ]
