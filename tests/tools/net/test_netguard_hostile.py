"""Hostile addresses: none of them reaches a listener on loopback."""

from collections.abc import Iterator

import httpx
import pytest

from tests.fakes.dns_server import name_server
from tests.fakes.listener import Listener, http, listener
from tools.errors import ToolFailed
from tools.kinds.registry import call_tool
from tools.net.deadline import Deadline
from tools.net.netguard import (
    AddressRefused,
    NetPolicy,
    ResponseRefused,
    guarded_client,
    open_client,
    parse_private_hosts,
)
from tools.net.sockets import GuardedBackend, resolve_by_system
from tools.spec import ToolSpec

SPELLINGS = {
    "loopback": "http://127.0.0.1:{port}/",
    "another loopback": "http://127.8.9.10:{port}/",
    "localhost": "http://localhost:{port}/",
    "upper case": "http://LOCALHOST:{port}/",
    "trailing dot": "http://localhost.:{port}/",
    "trailing dot of an address": "http://127.0.0.1.:{port}/",
    "decimal": "http://2130706433:{port}/",
    "octal": "http://0177.0.0.1:{port}/",
    "octal in one number": "http://017700000001:{port}/",
    "padded octal": "http://0000177.0.0.1:{port}/",
    "hex": "http://0x7f000001:{port}/",
    "hex in parts": "http://0x7f.0x0.0x0.0x1:{port}/",
    "hex in upper case": "http://0X7F.0.0.1:{port}/",
    "mixed bases": "http://0x7f.0.1:{port}/",
    "two parts": "http://127.1:{port}/",
    "three parts": "http://127.0.1:{port}/",
    "zero": "http://0:{port}/",
    "zeros": "http://0.0.0.0:{port}/",
    "empty parts": "http://127..1:{port}/",
    "circled digits": "http://①②⑦.⓪.⓪.①:{port}/",
    "full-width digits": "http://１２７.０.０.１:{port}/",
    "full-width dots": "http://127。0。0。1:{port}/",
    "full-width localhost": "http://ｌｏｃａｌｈｏｓｔ:{port}/",
    "percent-encoded": "http://%31%32%37.0.0.1:{port}/",
    "soft hyphen": "http://local\u00adhost:{port}/",
    "userinfo": "http://example.com@127.0.0.1:{port}/",
    "userinfo with a port": "http://example.com:80@127.0.0.1:{port}/",
    "userinfo twice": "http://a@b@127.0.0.1:{port}/",
    "backslash": "http://127.0.0.1:{port}\\@example.com/",
    "hash before at": "http://127.0.0.1:{port}#@example.com/",
    "question before at": "http://127.0.0.1:{port}?@example.com/",
    "tab inside": "http://127.0.0\t.1:{port}/",
    "line break inside": "http://127.0.0.1\r\n:{port}/",
    "v6 loopback": "http://[::1]:{port}/",
    "v6 loopback in full": "http://[0:0:0:0:0:0:0:1]:{port}/",
    "v6 unspecified": "http://[::]:{port}/",
    "mapped": "http://[::ffff:127.0.0.1]:{port}/",
    "mapped in hex": "http://[::ffff:7f00:1]:{port}/",
    "mapped in full": "http://[0:0:0:0:0:ffff:127.0.0.1]:{port}/",
    "compatible": "http://[::127.0.0.1]:{port}/",
    "NAT64": "http://[64:ff9b::127.0.0.1]:{port}/",
    "NAT64 of inner networks": "http://[64:ff9b:1::7f00:1]:{port}/",
    "6to4": "http://[2002:7f00:1::]:{port}/",
    "Teredo": "http://[2001:0:7f00:1::80ff:fffe]:{port}/",
    "ISATAP": "http://[2606:4700::5efe:127.0.0.1]:{port}/",
    "v6 with a zone": "http://[fe80::1%25lo]:{port}/",
    "site local": "http://[fec0::1]:{port}/",
    "unique local": "http://[fd12:3456::1]:{port}/",
    "v6 multicast": "http://[ff02::1]:{port}/",
    "documentation": "http://[2001:db8::1]:{port}/",
    "private 10": "http://10.0.0.1:{port}/",
    "private 172": "http://172.16.0.1:{port}/",
    "private 192": "http://192.168.0.1:{port}/",
    "carrier": "http://100.64.0.1:{port}/",
    "protocol block": "http://192.0.0.8:{port}/",
    "measurements": "http://198.18.0.1:{port}/",
    "multicast": "http://224.0.0.1:{port}/",
    "broadcast": "http://255.255.255.255:{port}/",
    "metadata": "http://169.254.169.254/latest/meta-data/",
    "metadata in decimal": "http://2852039166/",
    "metadata mapped": "http://[::ffff:169.254.169.254]/",
    "metadata by 6to4": "http://[2002:a9fe:a9fe::]/",
    "metadata by NAT64": "http://[64:ff9b::a9fe:a9fe]/",
    "metadata v6": "http://[fd00:ec2::254]/",
    "metadata by name": "http://metadata.google.internal/",
    "metadata by name with a dot": "http://Metadata.Google.Internal./",
    "metadata of Alibaba": "http://100.100.100.200/",
    "metadata of Oracle": "http://192.0.0.192/",
    "metadata of Azure": "http://168.63.129.16/",
    "container credentials": "http://169.254.170.2/",
    "file": "file:///etc/passwd",
    "ftp": "ftp://127.0.0.1:{port}/",
    "gopher": "gopher://127.0.0.1:{port}/_x",
    "socket": "http+unix://%2Fvar%2Frun%2Fdocker.sock/info",
    "no host": "http:///etc/passwd",
    "no scheme": "127.0.0.1:{port}/",
}

NO_URL = {
    "octal": "httpx takes no leading zeros",
    "padded octal": "httpx takes no leading zeros",
    "circled digits": "no letters of a host name by IDNA 2008",
    "full-width digits": "no letters of a host name by IDNA 2008",
    "full-width localhost": "no letters of a host name by IDNA 2008",
    "soft hyphen": "no letter of a host name by IDNA 2008",
    "tab inside": "no URL has control characters",
    "line break inside": "no URL has control characters",
}
"""Spellings no request can be made of, so that the guard never sees one, and why."""

NO_HOST = {"file", "no host", "no scheme"}
"""Spellings without a host, which the small client cannot be given."""


def hostile_resolver(host: str, port: int) -> list[str]:
    """Return what the system says of numbers and localhost; all else points inside.

    So no row is decided by a name server that happens to know nothing.
    """
    try:
        return resolve_by_system(host, port)
    except OSError:
        return ["127.0.0.1"]


@pytest.fixture(scope="module")
def inside() -> Iterator[tuple[Listener, Listener]]:
    """Listen on loopback, in both families."""
    with listener() as four, listener("::1") as six:
        yield four, six


def strict_client(**more: object) -> httpx.Client:
    """Return a client that may call the public internet and nothing else."""
    more = {"resolve": hostile_resolver, **more}
    return guarded_client(NetPolicy(), Deadline(seconds=5), timeout=2, **more)  # type: ignore[arg-type]  # forwards


@pytest.mark.parametrize("name", [one for one in SPELLINGS if one not in NO_URL])
def test_the_guard_refuses_every_spelling(inside, name):
    four, six = inside
    for one in inside:
        with strict_client() as client, pytest.raises(AddressRefused):
            client.get(SPELLINGS[name].replace("{port}", str(one.port)))

    assert (four.knocks, six.knocks) == (0, 0)


@pytest.mark.parametrize("name", [one for one in SPELLINGS if one in NO_URL])
def test_of_the_other_spellings_no_request_can_be_made(inside, name):
    four, _ = inside
    with strict_client() as client, pytest.raises(httpx.InvalidURL):
        client.get(SPELLINGS[name].replace("{port}", str(four.port)))

    assert four.knocks == 0


@pytest.mark.parametrize(
    "host",
    [
        *("0177.0.0.1", "0000177.0.0.1", "①②⑦.⓪.⓪.①", "１２７.０.０.１"),
        *("ｌｏｃａｌｈｏｓｔ", "local\u00adhost", "127.0.0\t.1", "127.0.0.1\r\n", ""),
        *("127..1", "%31%32%37.0.0.1", "a" * 64, "a." * 130 + "a", "local host"),
    ],
)
def test_the_guard_refuses_a_host_itself(inside, host):
    four, _ = inside
    guard = GuardedBackend(NetPolicy(), Deadline(seconds=5), resolve_by_system)

    with pytest.raises(AddressRefused):
        guard.connect_tcp(host, four.port, 2.0)

    assert four.knocks == 0


@pytest.mark.parametrize(
    "name", [one for one in SPELLINGS if one not in NO_URL and one not in NO_HOST]
)
def test_the_client_of_providers_refuses_every_spelling(inside, name):
    four, six = inside
    for one in inside:
        url = httpx.URL(SPELLINGS[name].replace("{port}", str(one.port)))
        client = open_client(NetPolicy(), timeout=20, resolve=hostile_resolver)
        with (
            pytest.raises(AddressRefused),
            client.exchange(url, b"", None, deadline=Deadline(seconds=20)),
        ):
            pass

    assert (four.knocks, six.knocks) == (0, 0)


@pytest.mark.parametrize("name", SPELLINGS)
def test_a_tool_says_that_it_may_not_or_that_this_is_no_address(inside, name):
    four, six = inside
    url = SPELLINGS[name].replace("{port}", str(four.port))
    spec = ToolSpec(name="t", kind="http", config={"url": url, "method": "GET"})

    with pytest.raises(ToolFailed) as caught:
        call_tool(spec, {}, deadline=Deadline(seconds=5))

    assert any(one in str(caught.value) for one in SENTENCES)
    assert (four.knocks, six.knocks) == (0, 0)


SENTENCES = (
    "are not allowed: ",
    "this is not an address (",
    "an address begins with https:// and a host",
    "an address has no space or line break in it",
    "store a password in a credential",
)


REDIRECTS = {
    "301": ("301 Moved", "http://127.0.0.1:{port}/"),
    "302": ("302 Found", "http://127.0.0.1:{port}/"),
    "303": ("303 See Other", "http://localhost:{port}/"),
    "307": ("307 Temporary Redirect", "http://[::ffff:127.0.0.1]:{port}/"),
    "308": ("308 Permanent Redirect", "http://2130706433:{port}/"),
    "without scheme": ("302 Found", "//127.0.0.1:{port}/"),
    "to metadata": ("302 Found", "http://169.254.169.254/latest/"),
    "to decimal metadata": ("307 Temporary Redirect", "http://2852039166/"),
    "to metadata by name": ("302 Found", "http://metadata.google.internal/"),
    "to all addresses": ("302 Found", "http://0:{port}/"),
    "to NAT64": ("308 Permanent Redirect", "http://[64:ff9b::7f00:1]:{port}/"),
    "to 6to4": ("302 Found", "http://[2002:7f00:1::]:{port}/"),
    "with userinfo": ("302 Found", "http://127.0.0.2@127.0.0.1:{port}/"),
    "with a backslash": ("302 Found", "http://127.0.0.1:{port}\\@evil.test/"),
    "with a dot behind": ("302 Found", "//localhost.:{port}/"),
    "to a name": ("302 Found", "http://evil.test:{port}/"),
    "to a file": ("302 Found", "file:///etc/passwd"),
    "to a socket": ("302 Found", "gopher://127.0.0.1:{port}/_"),
    "to no address": ("302 Found", "http://[::1"),
}


@pytest.mark.parametrize(("status", "target"), REDIRECTS.values(), ids=REDIRECTS.keys())
def test_no_redirect_reaches_loopback(inside, status, target):
    four, _ = inside
    location = "Location: " + target.replace("{port}", str(four.port))
    with (
        listener("127.0.0.2", http(status, location)) as outside,
        client_of_outside() as client,
        pytest.raises(GUARDED),
    ):
        client.get(f"http://127.0.0.2:{outside.port}/")

    assert outside.knocks == 1
    assert four.knocks == 0


GUARDED = (AddressRefused, ResponseRefused)
"""How a call ends that was redirected to where it may not go, or to nowhere."""


def client_of_outside() -> httpx.Client:
    """Return a client for which 127.0.0.2 stands for the public internet."""
    policy = NetPolicy(private_hosts=parse_private_hosts("tool=127.0.0.2")["tool"])
    return guarded_client(
        policy, Deadline(seconds=5), timeout=2, resolve=hostile_resolver
    )


@pytest.mark.parametrize("status", ["302 Found", "307 Temporary Redirect"])
def test_the_last_of_a_chain_of_redirects_is_checked_as_the_first(inside, status):
    four, _ = inside
    places = ["/a", "/b", "/c", f"http://localhost:{four.port}/"]

    def send_on(sock):
        http(status, f"Location: {places.pop(0)}")(sock)

    with (
        listener("127.0.0.2", send_on) as outside,
        client_of_outside() as client,
        pytest.raises(AddressRefused),
    ):
        client.get(f"http://127.0.0.2:{outside.port}/")

    assert outside.knocks == 4
    assert four.knocks == 0


def test_a_chain_of_redirects_ends():
    answers: list[bytes] = []

    def again(sock):
        answers.append(b"")
        http("302 Found", f"Location: /{len(answers)}")(sock)

    with (
        listener("127.0.0.2", again) as outside,
        client_of_outside() as client,
        pytest.raises(ResponseRefused, match="redirects more than 5 times"),
    ):
        client.get(f"http://127.0.0.2:{outside.port}/")

    assert outside.knocks == 6


def test_a_name_that_changes_its_address_is_asked_once_and_does_not_get_inside(inside):
    four, _ = inside
    rebinding = {"rebind.test": [["127.0.0.2"], ["127.0.0.1"]]}
    policy = NetPolicy(private_hosts=parse_private_hosts("tool=127.0.0.2")["tool"])
    with (
        name_server(rebinding) as names,
        listener("127.0.0.2", http("200 OK"), port=four.port),
        guarded_client(
            policy, Deadline(seconds=5), timeout=2, resolve=names.resolve
        ) as client,
    ):
        answer = client.get(f"http://rebind.test:{four.port}/")
        asked_once = list(names.asked)
        with pytest.raises(AddressRefused, match=r"127\.0\.0\.1 is not public"):
            client.get(f"http://rebind.test:{four.port}/")

    assert answer.status_code == 200
    assert asked_once == ["rebind.test"]
    assert four.knocks == 0


@pytest.mark.parametrize(
    "addresses",
    [
        ["127.0.0.1"],
        ["93.184.216.34", "127.0.0.1"],
        ["::1"],
        ["::ffff:127.0.0.1"],
        ["64:ff9b::7f00:1"],
        ["169.254.169.254"],
    ],
    ids=["inside", "half inside", "v6", "mapped", "NAT64", "metadata"],
)
def test_a_name_that_points_inside_is_refused(inside, addresses):
    four, six = inside
    with name_server({"evil.test": [addresses]}) as names:
        for port in (four.port, six.port):
            with (
                strict_client(resolve=names.resolve) as client,
                pytest.raises(AddressRefused, match=r"'evil\.test'"),
            ):
                client.get(f"http://evil.test:{port}/")

    assert (four.knocks, six.knocks) == (0, 0)


def test_proxy_variables_are_ignored(inside, monkeypatch):
    four, _ = inside
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "all_proxy"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{four.port}")
    with strict_client() as client, pytest.raises(AddressRefused):
        client.get("http://10.0.0.1/")

    assert four.knocks == 0


def test_a_guard_that_lets_everything_through_fails_this_table(monkeypatch):
    monkeypatch.setattr(NetPolicy, "check_address", lambda *_: None)
    with listener("127.0.0.1", http("200 OK")) as open_door:
        for name in ("loopback", "localhost", "upper case"):
            address = SPELLINGS[name].replace("{port}", str(open_door.port))
            with strict_client() as client:
                assert client.get(address).status_code == 200

    assert open_door.knocks == 3


def test_a_redirect_to_another_host_carries_no_credentials():
    secrets = {
        "authorization": "Bearer s3cret",
        "cookie": "a=s3cret",
        "x-key": "s3cret",
    }
    with listener("127.0.0.3", http("200 OK")) as other:
        location = f"Location: http://127.0.0.3:{other.port}/"
        with listener("127.0.0.2", http("302 Found", location)) as first:
            hosts = parse_private_hosts("tool=127.0.0.2,127.0.0.3")["tool"]
            policy = NetPolicy(private_hosts=hosts)
            with guarded_client(policy, Deadline(seconds=20), timeout=20) as client:
                client.get(f"http://127.0.0.2:{first.port}/", headers=secrets)

    assert (first.knocks, other.knocks) == (1, 1)
    assert b"s3cret" in first.heard[0]
    assert b"s3cret" not in other.heard[0]


def test_the_table_is_as_long_as_promised():
    assert len(set(SPELLINGS) - set(NO_URL)) >= 60
