"""Encryption at rest and the key file."""

import stat
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest
from cryptography.fernet import Fernet
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from domain.errors import ErrorKind, ServiceError
from infrastructure.secrets.key_derivation import derived_key
from infrastructure.secrets.lazy_box import LazySecretBox
from infrastructure.secrets.secret_box import SecretBox
from infrastructure.secrets.secret_keys import SECRET_KEY_FILE, HomeKeyRing, load_or_create_secret_keys

OLD, NEW = "an old passphrase of somebody", "the new passphrase of somebody"


@pytest.mark.requirement("B12")
def test_what_is_encrypted_is_unreadable_without_the_key_and_comes_back_with_it() -> None:
    box = SecretBox([NEW])

    encrypted = box.encrypt(b"sk-very-secret")

    assert b"secret" not in encrypted
    assert encrypted != box.encrypt(b"sk-very-secret")
    assert SecretBox([NEW]).decrypt(encrypted) == b"sk-very-secret"


@pytest.mark.requirement("B12")
def test_keys_rotate_the_first_encrypts_and_all_decrypt() -> None:
    stored_before = SecretBox([OLD]).encrypt(b"value")
    rotating = SecretBox([NEW, OLD])

    assert rotating.decrypt(stored_before) == b"value"
    stored_after = rotating.encrypt(b"value")
    assert SecretBox([NEW]).decrypt(stored_after) == b"value"
    with pytest.raises(ServiceError):
        SecretBox([OLD]).decrypt(stored_after)


@pytest.mark.parametrize("key", [b"", b"k", bytes(range(32)), b"longer than a block of the hash function " * 3])
@pytest.mark.parametrize("purpose", [b"", b"dragoman/secret-box/v1"])
def test_keys_are_derived_as_rfc_5869_says(key: bytes, purpose: bytes) -> None:
    expected = HKDF(algorithm=SHA256(), length=32, salt=None, info=purpose).derive(key)

    assert derived_key(key, purpose) == expected


def test_a_service_opens_its_box_with_the_first_value_and_has_what_is_derived_without() -> None:
    opened: list[SecretBox] = []

    def load(keys: Sequence[str]) -> SecretBox:
        opened.append(SecretBox(keys))
        return opened[-1]

    box = LazySecretBox([NEW, OLD], load=load)
    assert box.derived(b"a purpose") == SecretBox([NEW, OLD]).derived(b"a purpose")
    assert opened == []

    stored_before = SecretBox([OLD]).encrypt(b"value")
    assert box.decrypt(stored_before) == b"value"
    assert not box.is_current(stored_before)
    assert SecretBox([NEW]).decrypt(box.encrypt(b"value")) == b"value"
    assert len(opened) == 1


@pytest.mark.parametrize("opened_before", [True, False])
def test_a_service_uses_the_keys_it_is_given_last(*, opened_before: bool) -> None:
    box = LazySecretBox([OLD], load=SecretBox)
    derived = box.derived(b"a purpose")
    if opened_before:
        box.encrypt(b"value")

    box.use([NEW, OLD])

    assert SecretBox([NEW]).decrypt(box.encrypt(b"value")) == b"value"
    assert box.derived(b"a purpose") == (SecretBox([NEW]).derived(b"a purpose")[0], *derived)
    with pytest.raises(ValueError, match="needs a key"):
        box.use([])


def test_a_fernet_key_is_used_as_it_is() -> None:
    key = Fernet.generate_key()

    assert Fernet(key).decrypt(SecretBox([key.decode()]).encrypt(b"value")) == b"value"


def test_a_text_that_only_looks_like_a_fernet_key_is_a_passphrase() -> None:
    lookalike = "this passphrase has 44 characters, oh marvel"
    assert len(lookalike) == 44

    assert SecretBox([lookalike]).decrypt(SecretBox([lookalike]).encrypt(b"value")) == b"value"


@pytest.mark.parametrize(
    "stored",
    [b"", b"rubbish", b"gAAAAAB\xff", Fernet(Fernet.generate_key()).encrypt(b"value")],
    ids=["empty", "rubbish", "cut", "another key's"],
)
def test_a_value_that_no_key_fits_is_an_error_that_names_the_settings_to_look_at(stored: bytes) -> None:
    with pytest.raises(ServiceError) as caught:
        SecretBox([NEW, OLD]).decrypt(stored)

    assert (caught.value.code, caught.value.kind) == ("secret_undecryptable", ErrorKind.INTERNAL)
    assert "DRAGOMAN_SECRET_KEY" in caught.value.detail
    assert "secret.key" in caught.value.detail
    assert NEW not in caught.value.detail


def test_a_changed_value_is_not_decrypted() -> None:
    box = SecretBox([NEW])
    encrypted = bytearray(box.encrypt(b"value"))
    encrypted[30] ^= 1

    with pytest.raises(ServiceError):
        box.decrypt(bytes(encrypted))


@pytest.mark.requirement("B12")
def test_the_key_file_is_made_once_for_its_owner_alone_and_read_afterwards(tmp_path: Path) -> None:
    home = tmp_path / "deep" / "home"

    made = load_or_create_secret_keys(home)

    assert stat.S_IMODE(home.stat().st_mode) == 0o700
    assert stat.S_IMODE((home / SECRET_KEY_FILE).stat().st_mode) == 0o600
    assert load_or_create_secret_keys(home) == made
    assert len(made) == 1
    Fernet(made[0])  # raises if it is none
    assert [entry.name for entry in home.iterdir()] == [SECRET_KEY_FILE]


def test_a_key_file_that_others_could_read_is_closed_to_them(tmp_path: Path) -> None:
    (tmp_path / SECRET_KEY_FILE).write_text("a passphrase somebody wrote\n")
    (tmp_path / SECRET_KEY_FILE).chmod(0o644)

    assert load_or_create_secret_keys(tmp_path) == ("a passphrase somebody wrote",)
    assert stat.S_IMODE((tmp_path / SECRET_KEY_FILE).stat().st_mode) == 0o600


def test_starters_at_the_same_time_agree_on_one_key(tmp_path: Path) -> None:
    keys: list[tuple[str, ...]] = []
    barrier = threading.Barrier(8)

    def start() -> None:
        barrier.wait()
        keys.append(load_or_create_secret_keys(tmp_path / "home"))

    threads = [threading.Thread(target=start) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(keys) == 8
    assert len(set(keys)) == 1


@pytest.mark.parametrize("content", [b"", b"  \n", b"\xff\xfe"])
def test_a_key_file_without_a_key_is_an_error_with_its_path(tmp_path: Path, content: bytes) -> None:
    (tmp_path / SECRET_KEY_FILE).write_bytes(content)

    with pytest.raises(ServiceError) as caught:
        load_or_create_secret_keys(tmp_path)

    assert caught.value.code == "secret_key_unusable"
    assert str(tmp_path / SECRET_KEY_FILE) in caught.value.detail


def test_a_home_that_cannot_be_made_is_an_error_with_its_path(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")

    with pytest.raises(ServiceError) as caught:
        load_or_create_secret_keys(tmp_path / "file" / "home")

    assert caught.value.code == "secret_key_unusable"


@pytest.mark.requirement("B12")
def test_a_rotation_puts_a_new_key_on_disk_before_it_is_used_and_drops_the_old_one_in_the_end(tmp_path: Path) -> None:
    old = load_or_create_secret_keys(tmp_path)
    box = SecretBox(old)
    stored_before = box.encrypt(b"value")
    ring = HomeKeyRing(home=tmp_path, box=box)

    ring.begin_rotation()

    during = load_or_create_secret_keys(tmp_path)
    assert during[1:] == old
    assert not box.is_current(stored_before)
    assert box.decrypt(stored_before) == b"value"
    stored_after = box.encrypt(b"value")
    assert SecretBox(during).is_current(stored_after)

    ring.finish_rotation()

    assert load_or_create_secret_keys(tmp_path) == during[:1]
    assert stat.S_IMODE((tmp_path / SECRET_KEY_FILE).stat().st_mode) == 0o600
    assert box.decrypt(stored_after) == b"value"
    with pytest.raises(ServiceError):
        box.decrypt(stored_before)
    assert [entry.name for entry in tmp_path.iterdir()] == [SECRET_KEY_FILE]


@pytest.mark.requirement("B12")
def test_a_rotation_that_was_cut_off_goes_on_with_the_key_it_had_made(tmp_path: Path) -> None:
    old = load_or_create_secret_keys(tmp_path)
    HomeKeyRing(home=tmp_path, box=SecretBox(old)).begin_rotation()
    after_restart = load_or_create_secret_keys(tmp_path)
    box = SecretBox(after_restart)

    HomeKeyRing(home=tmp_path, box=box).begin_rotation()

    assert load_or_create_secret_keys(tmp_path) == after_restart
    assert box.decrypt(SecretBox(old).encrypt(b"value")) == b"value"
