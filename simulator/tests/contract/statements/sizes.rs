//! Compute sizes.

use super::*;

/// The console's values for computes of these sizes: RAM, local file cache, max_connections.
async fn rows(platform: &Platform, sizes: impl IntoIterator<Item = f64>) -> String {
    let mut seen = Vec::new();
    for cu in sizes {
        let capacity = capacity(platform, cu, cu).await;
        assert_eq!(capacity["vcpu"], cu);
        let [ram, cache, connections] =
            ["ram_gb", "local_file_cache_gb", "max_connections"].map(|name| &capacity[name]);
        seen.push(format!("{ram}/{cache}/{connections}"));
    }
    joined(seen)
}

async fn capacity(platform: &Platform, min: f64, max: f64) -> Value {
    let mut attributes = sized(min, max);
    attributes["branch_id"] = "br-main".into();
    attributes["type"] = "read_only".into();
    let path = platform.compute(attributes).await;
    platform.line(&path).await["capacity"].clone()
}

statements! {
    size_quarter: "0.25 CU: 1 GB, 0.8 GB, 112", async |it| rows(&it, [0.25]).await, same("1.0/0.8/112");
    size_half: "0.5 CU: 2 GB, 1.6 GB, 225", async |it| rows(&it, [0.5]).await, same("2.0/1.6/225");
    size_1: "1 CU: 4 GB, 3.2 GB, 450", async |it| rows(&it, [1.0]).await, same("4.0/3.2/450");
    size_2: "2 CU: 8 GB, 6.4 GB, 901", async |it| rows(&it, [2.0]).await, same("8.0/6.4/901");
    size_3: "3 CU: 12 GB, 9.6 GB, 1351", async |it| rows(&it, [3.0]).await, same("12.0/9.6/1351");
    size_4: "4 CU: 16 GB, 12.8 GB, 1802", async |it| rows(&it, [4.0]).await, same("16.0/12.8/1802");
    size_5: "5 CU: 20 GB, 16 GB, 2253", async |it| rows(&it, [5.0]).await, same("20.0/16.0/2253");
    size_6: "6 CU: 24 GB, 19.2 GB, 2703", async |it| rows(&it, [6.0]).await, same("24.0/19.2/2703");
    size_7: "7 CU: 28 GB, 22.4 GB, 3154", async |it| rows(&it, [7.0]).await, same("28.0/22.4/3154");
    size_8: "8 CU: 32 GB, 25.6 GB, 3604", async |it| rows(&it, [8.0]).await, same("32.0/25.6/3604");
    size_9_to_16: "9 to 16 CU: 36 GB to 64 GB, 28.8 GB to 51.2 GB, 4000", async |it| {
        let all = rows(&it, (9..=16).map(f64::from)).await;
        let all: Vec<&str> = all.split(' ').collect();
        assert!(all.iter().all(|row| row.ends_with("/4000")), "{all:?}");
        joined([all[0], all[7]])
    }, same("36.0/28.8/4000 64.0/51.2/4000");
    size_18_to_56: "18, 20, 22, ... 56 CU: 72 GB to 224 GB, 57.6 GB to 179.2 GB, 4000", async |it| {
        let all = rows(&it, (9..=28).map(|half| f64::from(half * 2))).await;
        let all: Vec<&str> = all.split(' ').collect();
        assert!(all.iter().all(|row| row.ends_with("/4000")), "{all:?}");
        joined([all[0], all[19]])
    }, same("72.0/57.6/4000 224.0/179.2/4000");
    size_others: "no other sizes are listed", async |it| {
        let mut seen = Vec::new();
        for cu in [-1.0, 0.0, 0.1, 0.3, 0.75, 1.5, 17.0, 17.3, 19.0, 55.0, 57.0, 58.0] {
            let mut attributes = sized(cu, cu);
            attributes["branch_id"] = "br-main".into();
            attributes["type"] = "read_only".into();
            seen.push(it.post(COMPUTES, ORGANIZATION, endpoint(attributes)).await.status);
        }
        seen.dedup();
        joined(seen)
    }, same("400");
    max_connections: "max_connections is set by the minimum size and does not grow with autoscaling", async |it| {
        capacity(&it, 0.25, 8.0).await["max_connections"].to_string()
    }, same("112");
}
