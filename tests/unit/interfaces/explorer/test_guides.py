"""Pages of the documentation, which anybody may ask for."""

from interfaces.explorer import guides


def test_names_of_no_page_are_not_kept() -> None:
    assert guides.guide_page("confinement") is not None
    kept = guides._rendered.cache_info().currsize
    assert [guides.guide_page(f"none-{number}") for number in range(100)] == [None] * 100
    assert guides._rendered.cache_info().currsize == kept
