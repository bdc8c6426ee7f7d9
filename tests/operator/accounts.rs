//! Accounts, end to end.

use crate::stage::Stage;

#[tokio::test]
async fn an_account_reports_what_its_credentials_see() {
    let stage = Stage::new("account").await;
    let ready = stage.until_ready("account/prod").await;
    assert!(ready["status"]["projectCount"].as_u64().unwrap() >= 1, "{ready}");
    assert_eq!(ready["status"]["capabilities"]["keyListing"], true);
}
