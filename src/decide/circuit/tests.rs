use super::*;

const NOW: Duration = Duration::from_secs(1000);

fn after(seconds: u64) -> Duration {
    NOW + Duration::from_secs(seconds)
}

fn unavailable(seconds: u64) -> Circuit {
    Circuit::Unavailable {
        next_probe: after(seconds),
    }
}

#[test]
fn one_request_at_a_time_asks_and_the_others_wait() {
    for (circuit, admitted, left) in [
        (Circuit::Available, Admission::Pass, Circuit::Available),
        (unavailable(1), Admission::Wait(after(1)), unavailable(1)),
        (unavailable(0), Admission::Probe, unavailable(2)),
    ] {
        let mut now = circuit;
        assert_eq!((now.admit(NOW), now), (admitted, left), "{circuit:?}");
    }
    let mut circuit = unavailable(0);
    let asked = [
        circuit.admit(NOW),
        circuit.admit(NOW),
        circuit.admit(after(1)),
        circuit.admit(after(2)),
    ];
    let wait = Admission::Wait(after(2));
    assert_eq!(
        asked,
        [Admission::Probe, wait, wait, Admission::Probe],
        "no answer holds up the next for 2 s"
    );
}

/// The state after this answer. `asked`: the request was sent to find out.
fn answered(before: Circuit, asked: bool, answer: ServerAnswer) -> Circuit {
    let mut circuit = before;
    circuit.answered(asked, answer, NOW);
    circuit
}

const SILENT: ServerAnswer = ServerAnswer::Unavailable(None);

fn retry_after(seconds: u64) -> ServerAnswer {
    ServerAnswer::Unavailable(Some(Duration::from_secs(seconds)))
}

#[test]
fn the_first_answer_that_is_not_served_makes_it_unavailable() {
    let first = |answer| answered(Circuit::Available, false, answer);
    assert_eq!(first(ServerAnswer::Served), Circuit::Available);
    assert_eq!(first(SILENT), unavailable(0), "the next asks at once");
    assert_eq!(first(retry_after(4)), unavailable(4), "it names a pause");
}

#[test]
fn the_answer_to_a_request_that_asks_counts() {
    let asked = |answer| answered(unavailable(2), true, answer);
    assert_eq!(asked(SILENT), unavailable(1), "still unavailable");
    assert_eq!(
        asked(retry_after(0)),
        unavailable(1),
        "a pause of 0 s is none"
    );
    assert_eq!(asked(retry_after(4)), unavailable(4), "a pause is obeyed");
    assert_eq!(
        asked(retry_after(86_400)),
        unavailable(60),
        "a pause is bounded"
    );
    assert_eq!(
        asked(ServerAnswer::Served),
        Circuit::Available,
        "it is back"
    );
}

#[test]
fn an_answer_to_an_earlier_request_only_sets_a_pause() {
    let earlier = |answer| answered(unavailable(2), false, answer);
    assert_eq!(earlier(ServerAnswer::Served), unavailable(2));
    assert_eq!(earlier(SILENT), unavailable(2));
    assert_eq!(earlier(retry_after(4)), unavailable(4));
}

#[test]
fn which_statuses_say_nothing_of_what_was_asked_for() {
    let unavailable: Vec<u16> = (100..600)
        .filter(|status| is_unavailable(*status))
        .collect();
    assert_eq!(unavailable, [429, 502, 503, 504]);
}
