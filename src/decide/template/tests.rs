use super::*;

#[test]
fn what_is_too_much_for_a_secret_is_left_out() {
    // The limits admit 32 entries of 4096 bytes.
    let text = "{{ password }}".repeat(4096 / "{{ password }}".len());
    let password = "x".repeat(4096);
    let mut filler = Filler::default();
    let total: usize = (0..32)
        .map(|_| filler.fill(&text, |_| Some(&password)).len())
        .sum();
    assert!(
        (TOO_MUCH..TOO_MUCH + 32 * 2 * 4096).contains(&total),
        "{total}"
    );
}
