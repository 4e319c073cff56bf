"""A mail server on loopback that speaks SMTP, and refuses what a test tells it to."""

import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from email.message import EmailMessage
from typing import Any


@dataclass
class MailServer:
    """The running server, seen from the test."""

    port: int = 0
    received: list[EmailMessage] = field(default_factory=list)
    recipients: list[str] = field(default_factory=list)
    refusals: dict[str, str] = field(default_factory=dict)
    """Replies to commands instead of the usual ones: `{"RCPT": "550 no"}`."""


@contextmanager
def mail_server(settings: Any) -> Iterator[MailServer]:
    """Receive until the block ends; the site sends its mail here."""
    found = MailServer()

    class Session(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            self.say("220 here")
            while line := self.rfile.readline():
                word = line.split()[0].decode().upper() if line.split() else ""
                if word == "QUIT":
                    self.say("221 bye")
                    return
                if word in found.refusals:
                    self.say(found.refusals[word])
                elif word == "RCPT":
                    found.recipients.append(line.decode().strip())
                    self.say("250 ok")
                elif word == "DATA":
                    self.receive()
                else:
                    self.say("250 ok")

        def receive(self) -> None:
            self.say("354 go on")
            lines = []
            while (line := self.rfile.readline()) not in (b".\r\n", b""):
                lines.append(line.removeprefix(b".") if line[:2] == b".." else line)
            message = message_from_bytes(b"".join(lines), policy=policy.default)
            assert isinstance(message, EmailMessage)
            found.received.append(message)
            self.say("250 taken")

        def say(self, text: str) -> None:
            self.wfile.write(f"{text}\r\n".encode())

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Session) as server:
        server.daemon_threads = True
        found.port = server.server_address[1]
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
        settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", found.port
        settings.EMAIL_IS_ON, settings.EMAIL_TIMEOUT = True, 5
        try:
            yield found
        finally:
            server.shutdown()
            thread.join()
