//! The life of an account's keys through the operations.

use std::sync::Arc;

use access::{Access, Credentials, MintedKey};
use feed::testing::accounts::world;
use feed::testing::{START_MS, call, text};
use operation::context::{Context, Part};
use operation::problem::Problem;
use operation::{Call, Caller};
use schemas::error_code::ErrorCode;
use schemas::views::accounts::Tier;
use serde_json::{Value, json};

use super::*;

/// A caller with a key.
fn caller_of(ctx: &Arc<Context>, minted: &MintedKey) -> Caller {
    let tier = Tier::from_name(&minted.row.tier).unwrap();
    Caller { tier, key_id: minted.row.id.clone(), account: minted.row.account.clone(), ..call(ctx).caller }
}

/// Calls an operation as a caller. Returns the status and the answer.
async fn run(ctx: &Arc<Context>, caller: &Caller, operation: Operation, arguments: Value, once: &str) -> Result<(u16, Value), Problem> {
    let idempotency_key = Some(once.to_owned()).filter(|once| !once.is_empty());
    let call = Call { caller: caller.clone(), idempotency_key, ..call(ctx) };
    let answer = (operation.run)(call, arguments).await?;
    Ok((answer.status, serde_json::from_str(&text(answer)).unwrap()))
}

async fn works(ctx: &Context, address: std::net::IpAddr, key: &Value) -> bool {
    let credentials = Credentials { key: key.as_str().map(str::to_owned) };
    Access::of(ctx).admit(ctx, credentials, address, &list::operation(), false).await.is_ok()
}

/// Proves the life of an account's keys: another key works and is listed with its last characters only, a rotated one works for the hours asked for, a
/// revoked one ends at once, and the last one ends only if that is meant.
#[tokio::test]
async fn keys_of_an_account() {
    let (world, ctx) = world().await;
    let first = Access::of(&ctx).mint(&ctx, Tier::Pro, "ann@example.org").await.unwrap();
    let own = caller_of(&ctx, &first);
    let (status, another) = run(&ctx, &own, create::operation(), json!({}), "").await.unwrap();
    assert_eq!((status, &another["tier"], &another["account"]), (201, &json!("pro"), &json!(own.account)));
    assert!(works(&ctx, own.address, &another["api_key"]).await);

    let (_, listed) = run(&ctx, &own, list::operation(), json!({}), "").await.unwrap();
    let key_with_id = |listed: &Value, id: &str| listed["keys"].as_array().unwrap().iter().find(|key| key["keyId"] == id).unwrap().clone();
    let (shown, key) = (key_with_id(&listed, &first.row.id), first.key.reveal());
    assert_eq!((&shown["endsWith"], &shown["state"], &shown["isOwn"]), (&json!(key[key.len() - 4..]), &json!("working"), &json!(true)));
    assert_eq!((&shown["lastUsedOn"], &shown["endsAt"], &listed["working"]), (&json!(""), &json!(""), &json!(2)));
    assert!(!listed.to_string().contains("hw_live_") && listed["keys"].as_array().unwrap().len() == 2);

    // The other key replaces the first one, which works for two hours more.
    let arguments = json!({"id": first.row.id, "overlapHours": 2});
    let (status, rotated) = run(&ctx, &own, rotate::operation(), arguments.clone(), "").await.unwrap();
    assert_eq!((status, &rotated["replaced"]["state"]), (201, &json!("ending")));
    assert!(works(&ctx, own.address, &rotated["api_key"]).await && works(&ctx, own.address, &json!(key)).await);
    assert!(!works(&world.context(START_MS + 2 * 3_600_000), own.address, &json!(key)).await);
    let problem = run(&ctx, &own, rotate::operation(), arguments, "").await.unwrap_err();
    assert_eq!((problem.code, problem.parameter.as_str()), (ErrorCode::ParameterInvalid, "id"));

    // Without overlap the replaced key ends at once.
    let arguments = json!({"id": another["key_id"], "overlapHours": 0});
    let (_, at_once) = run(&ctx, &own, rotate::operation(), arguments, "").await.unwrap();
    assert_eq!(at_once["replaced"]["state"], "ended");
    assert!(!works(&ctx, own.address, &another["api_key"]).await && works(&ctx, own.address, &at_once["api_key"]).await);

    let revoke = async |id: &Value, last: bool| run(&ctx, &own, revoke::operation(), json!({"id": id, "last": last}), "").await;
    let (_, revoked) = revoke(&at_once["key_id"], false).await.unwrap();
    assert_eq!((&revoked["working"], &revoked["revoked"]["state"]), (&json!(1), &json!("ended")));
    assert!(revoked["note"].is_null() && !works(&ctx, own.address, &at_once["api_key"]).await);
    assert_eq!(revoke(&at_once["key_id"], false).await.unwrap().1, revoked, "a repeated request");
    let problem = revoke(&rotated["key_id"], false).await.unwrap_err();
    assert_eq!((problem.code, problem.parameter.as_str()), (ErrorCode::ParameterInvalid, "last"));
    assert!(works(&ctx, own.address, &rotated["api_key"]).await, "the last key works until its end is meant");
    let (_, last) = revoke(&rotated["key_id"], true).await.unwrap();
    assert!(last["working"] == 0 && last["note"].is_string());
}

/// Proves that an account reaches no key of another one, whatever the operation, and does not learn whether it exists.
#[tokio::test]
async fn keys_of_others_are_unknown() {
    let (_world, ctx) = world().await;
    let [ann, eve] =
        [Access::of(&ctx).mint(&ctx, Tier::Pro, "").await.unwrap(), Access::of(&ctx).mint(&ctx, Tier::Free, "").await.unwrap()];
    let caller = caller_of(&ctx, &eve);
    for operation in [rotate::operation, revoke::operation] {
        for id in [ann.row.id.as_str(), "key_000000000000000000000000", "x"] {
            let problem = run(&ctx, &caller, operation(), json!({ "id": id }), "").await.unwrap_err();
            assert_eq!((problem.code, problem.detail.replace(id, "ID")), (ErrorCode::NotFound, "there is no working key ID".to_owned()));
        }
    }
    let (_, listed) = run(&ctx, &caller, list::operation(), json!({}), "").await.unwrap();
    assert!(!listed.to_string().contains(&ann.row.id) && listed["keys"].as_array().unwrap().len() == 1);
    assert!(works(&ctx, caller.address, &json!(ann.key.reveal())).await);
}

/// Proves that a repeated request creates and replaces nothing and shows no key, and that its idempotency key is for one request.
#[tokio::test]
async fn repeated_requests() {
    let (_world, ctx) = world().await;
    let minted = Access::of(&ctx).mint(&ctx, Tier::Pro, "").await.unwrap();
    let own = caller_of(&ctx, &minted);
    let (first, again) = (
        run(&ctx, &own, create::operation(), json!({}), "once").await.unwrap(),
        run(&ctx, &own, create::operation(), json!({}), "once").await.unwrap(),
    );
    assert_eq!((first.0, again.0, &again.1["api_key"], &again.1["key_id"]), (201, 200, &json!(""), &first.1["key_id"]));
    let rotate =
        async |id: &Value, hours: i64| run(&ctx, &own, rotate::operation(), json!({"id": id, "overlapHours": hours}), "once").await;
    let (first_rotation, second) = (rotate(&first.1["key_id"], 1).await.unwrap(), rotate(&first.1["key_id"], 1).await.unwrap());
    assert_eq!((first_rotation.0, second.0, &second.1["key_id"]), (201, 200, &first_rotation.1["key_id"]));
    assert!(second.1["api_key"] == "" && second.1["note"].is_string() && second.1["replaced"] == first_rotation.1["replaced"]);
    for (id, hours) in [(&first.1["key_id"], 0), (&json!(minted.row.id), 1)] {
        assert_eq!(rotate(id, hours).await.unwrap_err().code, ErrorCode::IdempotencyMismatch);
    }
    let (_, listed) = run(&ctx, &own, list::operation(), json!({}), "").await.unwrap();
    assert_eq!(listed["keys"].as_array().unwrap().len(), 3);
}

/// Proves that an account has at most 50 keys that work, creates at most 50 a day, and that pages of the list join.
#[tokio::test]
async fn keys_are_limited() {
    let (world, ctx) = world().await;
    let minted = Access::of(&ctx).mint(&ctx, Tier::Free, "").await.unwrap();
    let own = caller_of(&ctx, &minted);
    for _ in 0..49 {
        run(&ctx, &own, create::operation(), json!({}), "").await.unwrap();
    }
    assert_eq!(run(&ctx, &own, create::operation(), json!({}), "").await.unwrap_err().code, ErrorCode::LimitReached);
    let rotate = async |ctx: &Arc<Context>, id: &Value| run(ctx, &own, rotate::operation(), json!({"id": id, "overlapHours": 0}), "").await;
    let rotated = rotate(&ctx, &json!(minted.row.id)).await.unwrap().1;
    let problem = rotate(&ctx, &rotated["key_id"]).await.unwrap_err();
    assert_eq!((problem.code, problem.retry_after_s), (ErrorCode::RateLimited, 86_400));
    let tomorrow = world.context(START_MS + 86_400_000);
    rotate(&tomorrow, &rotated["key_id"]).await.unwrap();

    let (mut ids, mut after) = (Vec::new(), Value::Null);
    loop {
        let arguments = if after.is_null() { json!({"limit": 5}) } else { json!({"limit": 5, "after": after}) };
        let (_, page) = run(&ctx, &own, list::operation(), arguments, "").await.unwrap();
        ids.extend(page["keys"].as_array().unwrap().iter().map(|key| key["keyId"].as_str().unwrap().to_owned()));
        after = page["next"].clone();
        if after.is_null() {
            break;
        }
    }
    let all: std::collections::BTreeSet<&String> = ids.iter().collect();
    assert_eq!((ids.len(), all.len()), (52, 52));
    assert_eq!(run(&ctx, &own, list::operation(), json!({"after": "x"}), "").await.unwrap_err().parameter, "after");
}
