use serde_json::json;

use super::*;

const ORDERS: ObjectKey = ObjectKey {
    namespace: "shop",
    name: "orders",
};
const LINK: &str = "dbplane.dev/record";

fn sealed() -> String {
    seal(LINK, &json!({"id": "ep-1", "at": 7}), ORDERS)
}

#[test]
fn what_was_written_is_read_in_whatever_order() {
    let read = open::<Value>(LINK, &sealed(), ORDERS).unwrap();
    assert_eq!((&read["id"], &read["at"]), (&json!("ep-1"), &json!(7)));
    assert_eq!(
        seal(LINK, &read, ORDERS),
        sealed(),
        "what was read is written as it was"
    );
    let fields: Map<String, Value> = serde_json::from_str(&sealed()).unwrap();
    let turned: Vec<String> = fields
        .iter()
        .rev()
        .map(|(name, value)| format!(" {name:?} : {value}"))
        .collect();
    assert!(open::<Value>(LINK, &format!("{{{} }}", turned.join(",")), ORDERS).is_ok());
}

#[test]
fn edited_copied_and_foreign_texts_are_told_apart() {
    let edits = [
        sealed().replace("ep-1", "ep-2"),
        sealed().replace("7", "8"),
        sealed().replace("orders", "copy"),
        sealed().replace("\"at\":7,", ""),
        json!({"id": "ep-1"}).to_string(),
        "{}".to_owned(),
    ];
    for text in edits {
        assert_eq!(
            open::<Value>(LINK, &text, ORDERS),
            Err(InvalidAnnotation::Edited),
            "{text}"
        );
    }
    assert_eq!(
        open::<Value>("example.com/other", &sealed(), ORDERS),
        Err(InvalidAnnotation::Edited),
        "another annotation's text"
    );
    for other in [
        ObjectKey {
            name: "copy",
            ..ORDERS
        },
        ObjectKey {
            namespace: "test",
            ..ORDERS
        },
    ] {
        assert_eq!(
            open::<Value>(LINK, &sealed(), other),
            Err(InvalidAnnotation::CopiedFrom("shop/orders".into()))
        );
    }
    for text in ["", "{", "7", "[]"] {
        assert!(
            matches!(
                open::<Value>(LINK, text, ORDERS),
                Err(InvalidAnnotation::Unreadable(_))
            ),
            "{text}"
        );
    }
    let other_fields = seal(LINK, &json!({"at": "noon"}), ORDERS);
    #[derive(serde::Deserialize, Debug, PartialEq)]
    struct DatedText {
        at: u32,
    }
    assert!(matches!(
        open::<DatedText>(LINK, &other_fields, ORDERS),
        Err(InvalidAnnotation::Unreadable(_))
    ));
}
