use super::*;

#[test]
fn who_refuses_is_named() {
    for (message, who) in [
        (
            "admission webhook \"guard.example.com\" denied the request: no",
            "admission webhook guard.example.com",
        ),
        (
            "Internal error occurred: failed calling webhook \"guard.example.com\": failed to call webhook: Post \
                 \"https://guard.example.svc:443/?timeout=10s\": dial tcp 10.0.0.1:443: connect: connection refused",
            "admission webhook guard.example.com",
        ),
        (
            "computes.dbplane.dev \"orders\" is forbidden: ValidatingAdmissionPolicy 'no-finalizers' with binding 'all' denied request: no",
            "admission policy no-finalizers",
        ),
        (
            "secrets \"ci-key\" is forbidden: exceeded quota: few, requested: secrets=1, used: secrets=3, limited: secrets=3",
            "quota few",
        ),
        (
            "computes.dbplane.dev \"orders\" is forbidden: User \"system:serviceaccount:dbplane-system:dbplane\" cannot patch resource",
            "the API server",
        ),
        (
            "Compute.dbplane.dev \"orders\" is invalid: metadata.annotations: Too long: may not be more than 262144 bytes",
            "the API server",
        ),
        ("admission webhook \"without an end", "the API server"),
        ("", "the API server"),
    ] {
        assert_eq!(Refuser::of(message).to_string(), who, "{message}");
    }
    let forged = format!(
        "admission webhook \"a\nb{}\" denied the request",
        "c".repeat(1000)
    );
    let named = Refuser::of(&forged).to_string();
    assert!(
        named.starts_with("admission webhook a bc") && named.len() <= LONGEST_NAME + 20,
        "{named}"
    );
}
