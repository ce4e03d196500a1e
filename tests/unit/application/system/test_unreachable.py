"""Causes of a missing connection, found anywhere in the chain of errors that clients raise."""

import socket
import ssl

import pytest

from application.system.unreachable import cause_of


def an_alert(reason: str) -> ssl.SSLError:
    error = ssl.SSLError(1, "secret")
    error.reason = reason
    return error


@pytest.mark.requirement("U4")
@pytest.mark.parametrize(
    ("error", "told"),
    [
        (socket.gaierror(socket.EAI_NONAME, "secret"), "no host has this name"),
        (socket.gaierror(socket.EAI_AGAIN, "secret"), "its name cannot be looked up now"),
        (ssl.SSLCertVerificationError("secret"), "its TLS certificate is not trusted"),
        (an_alert("TLSV13_ALERT_CERTIFICATE_REQUIRED"), "it refuses the client certificate, or requires one"),
        (an_alert("TLSV1_ALERT_UNKNOWN_CA"), "it refuses the client certificate, or requires one"),
        (an_alert("TLSV1_ALERT_PROTOCOL_VERSION"), "it does not speak TLS at this port"),
        (ssl.SSLError("secret"), "it does not speak TLS at this port"),
        (ConnectionRefusedError("secret"), "nothing accepts connections at this port"),
        (TimeoutError("secret"), "it does not answer"),
        (OSError("secret"), "no connection"),
    ],
)
def test_the_cause_is_told_however_deep_it_lies(error: OSError, told: str) -> None:
    assert cause_of(error) == told
    by_client = RuntimeError("connection failed")
    by_client.__cause__ = OSError("all attempts failed")
    by_client.__cause__.__context__ = error
    assert cause_of(by_client) == told


def test_a_chain_that_leads_back_to_itself_ends() -> None:
    one, other = OSError("one"), OSError("other")
    one.__cause__, other.__cause__ = other, one
    assert cause_of(one) == "no connection"
