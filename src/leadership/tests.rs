use super::*;

#[test]
fn it_holds_until_it_runs_out_or_is_ended() {
    assert!(Leadership::default().holds(), "no election");
    let elected = Leadership::elected();
    assert!(!elected.holds(), "not elected yet");
    let shared = elected.clone();
    elected.lose();
    assert!(!elected.is_suspended(), "it has never led");
    elected.extend(clock::since_boot() + Duration::from_secs(60));
    assert!(shared.holds() && !shared.is_suspended());
    elected.extend(clock::since_boot());
    assert!(!shared.holds() && shared.is_suspended(), "it has run out");
    elected.extend(clock::since_boot() + Duration::from_secs(60));
    elected.lose();
    assert!(
        !shared.holds() && shared.is_suspended(),
        "another process leads"
    );
    elected.end();
    assert!(!shared.holds() && !shared.is_suspended());
}
