"""Private keys in PEM, read in a bounded time. Below: cryptography.

The library holds the interpreter's lock while it tests the primes of an RSA key: 0.3 s for 4,096
bits, minutes for 20,000, in which the whole process stands still. So the numbers of an RSA key are
compared here instead, without a test whether they are primes: a key of other numbers makes invalid
signatures."""

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, RSAPrivateNumbers
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
from cryptography.hazmat.primitives.serialization import load_pem_private_key

MAX_PEM_BYTES = 8 * 1024
MAX_RSA_BITS = 4_096
_MAX_EXPONENT_BITS = 64
_UNREADABLE = "is not a private key in PEM without a password"


class UnusableKeyError(Exception):
    """`reason` follows the name of the key, and has nothing of its value."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def read_private_key(pem: bytes) -> PrivateKeyTypes:
    """Raises UnusableKeyError."""
    if len(pem) > MAX_PEM_BYTES:
        raise UnusableKeyError(f"is larger than {MAX_PEM_BYTES} bytes")
    try:
        key = load_pem_private_key(pem, password=None, unsafe_skip_rsa_key_validation=True)
        if not isinstance(key, RSAPrivateKey):
            return key
        if key.key_size > MAX_RSA_BITS:
            raise UnusableKeyError(f"has more than {MAX_RSA_BITS} bits")
        is_whole = _is_whole(key.private_numbers())
    except UnsupportedAlgorithm as error:
        raise UnusableKeyError("has an algorithm that is not supported") from error
    except (ValueError, TypeError) as error:
        raise UnusableKeyError(_UNREADABLE) from error
    if not is_whole:
        raise UnusableKeyError(_UNREADABLE)
    return key


def _is_whole(key: RSAPrivateNumbers) -> bool:
    """Whether the numbers are those of one key (RFC 8017, section 3.2)."""
    p, q, d = key.p, key.q, key.d
    e, n = key.public_numbers.e, key.public_numbers.n
    if (
        min(p, q) < 3
        or p == q
        or p * q != n
        or not (n & 1 and d < n and e & 1 and e.bit_length() <= _MAX_EXPONENT_BITS)
    ):
        return False
    is_inverse = e * d % (p - 1) == 1 and e * d % (q - 1) == 1
    return is_inverse and key.dmp1 == d % (p - 1) and key.dmq1 == d % (q - 1) and key.iqmp < p and key.iqmp * q % p == 1
