"""Private keys of admins, which are read where all others are served: in a bounded time."""

import base64
from dataclasses import dataclass

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, Encoding, NoEncryption, PrivateFormat

from infrastructure.identity.private_keys import MAX_PEM_BYTES, UnusableKeyError, read_private_key

pytestmark = pytest.mark.requirement("P4")

GOOD = rsa.generate_private_key(public_exponent=65537, key_size=2048)
NUMBERS = GOOD.private_numbers()


@dataclass(frozen=True, kw_only=True)
class Numbers:
    p: int = NUMBERS.p
    q: int = NUMBERS.q
    d: int = NUMBERS.d
    e: int = 65537
    n: int = NUMBERS.public_numbers.n

    @property
    def pem(self) -> bytes:
        """A key that nothing has checked (RFC 8017, appendix A.1.2)."""
        p, q, d = self.p, self.q, self.d
        numbers = (0, self.n, self.e, d, p, q, d % (p - 1), d % (q - 1), pow(q, -1, p))
        der = tagged(0x30, b"".join(tagged(2, each.to_bytes(each.bit_length() // 8 + 1)) for each in numbers))
        kind = b"RSA PRIVATE KEY"
        return b"-----BEGIN %s-----\n%s-----END %s-----\n" % (kind, base64.encodebytes(der), kind)


def tagged(tag: int, content: bytes) -> bytes:
    """In DER, with the length in two bytes or one."""
    size = len(content)
    length = bytes([size]) if size < 0x80 else b"\x81%c" % size if size < 0x100 else b"\x82" + size.to_bytes(2)
    return bytes([tag]) + length + content


def pem_of(key: rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def reason_of(pem: bytes) -> str:
    with pytest.raises(UnusableKeyError) as refused:
        read_private_key(pem)
    return refused.value.reason


def test_keys_of_the_usual_kinds_are_read() -> None:
    for key in (GOOD, ec.generate_private_key(ec.SECP256R1()), ed25519.Ed25519PrivateKey.generate()):
        assert pem_of(read_private_key(pem_of(key))) == pem_of(key)  # type: ignore[arg-type]


def test_a_key_of_these_numbers_is_read() -> None:
    assert pem_of(read_private_key(Numbers().pem)) == pem_of(GOOD)  # type: ignore[arg-type]


def test_a_key_whose_check_would_take_seconds_is_refused_by_its_size_before_the_check() -> None:
    p, q = 2**4_300 + 1, 2**4_301 - 1  # no primes: a check would say that it is no key
    assert reason_of(Numbers(p=p, q=q, n=p * q).pem) == "has more than 4096 bits"
    assert reason_of(b"-" * (MAX_PEM_BYTES + 1)) == "is larger than 8192 bytes"


@pytest.mark.parametrize(
    "numbers",
    [
        Numbers(p=2**6_000 + 1),  # a small modulus beside a large prime
        Numbers(d=NUMBERS.d + 2),
        Numbers(e=3),
        Numbers(e=2**4_000 + 1),
        Numbers(n=NUMBERS.public_numbers.n + 2),
    ],
)
def test_numbers_that_are_not_of_one_key_are_refused(numbers: Numbers) -> None:
    assert reason_of(numbers.pem) == "is not a private key in PEM without a password"


def test_a_key_with_a_password_is_refused() -> None:
    locked = GOOD.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"s3cret"))
    assert reason_of(locked) == "is not a private key in PEM without a password"
