//! The operation `changes`, the same for every service: the feed of changes, from a cursor on.
//!
//! A page is spliced from stored bytes. Everything else in the answer follows from the positions of the page, so its ETag is known before its body.

use std::sync::Arc;

use bytes::Bytes;
use operation::context::Part;
use operation::context::store_problem;
use operation::metrics;
use operation::problem::Problem;
use operation::{Answer, Body, Call, Definition, Event, Form, Operation};
use schemars::JsonSchema;
use schemas::details::ChangeRecord;
use schemas::error_code::ErrorCode;
use schemas::position::Seq;
use serde::Serialize;
use serde_json::{Value, json};
use view_store::feed::{FeedReader, Page};

use super::etag::{etag, matches_etag};
use super::free::FreeWindow;
use super::history::last_recorded;
use super::notes::{page_notes, sample};
use super::page::PageInfo;
use super::page_request::PageRequest;
use super::position::{self};
use super::redaction::Redaction;
use super::start::{catch_up, later, newest, newest_page, start};
use super::unseen_versions::without_unseen;
use super::{Source, cursor};
use crate::Feeds;

/// Version of the rendering, part of the ETag. Increase it when the same positions are rendered differently.
const RENDERING: &str = "1";

/// One change.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(bound = "R: JsonSchema + ChangeRecord", rename = "{R}Change")]
pub struct Change<R: ChangeRecord> {
    /// What happened: `new`, or `modified`.
    pub event: String,
    /// Number of the change within the service: rises by 1 or more from change to change.
    pub seq: Seq,
    /// When it was recorded, RFC 3339 in UTC. Never decreases.
    #[schemars(with = "proofs::json_type::Time")]
    pub recorded_at: String,
    /// What the change shows in addition to the record.
    #[serde(flatten)]
    pub details: R::Details,
    /// True if the change is late news: it happened long before it was recorded, and no digest, list of news or webhook has it. Absent or false
    /// otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backfill: Option<bool>,
    /// The record after the change.
    pub record: R,
}

/// A page of changes.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(bound = "R: JsonSchema + ChangeRecord")]
pub struct Changes<R: ChangeRecord> {
    /// The changes, oldest first.
    pub changes: Vec<Change<R>>,
    /// The position of the page.
    #[serde(flatten)]
    pub page: PageInfo,
}

/// Defines the operation for one service, whose records are `R`.
pub fn operation<R: ChangeRecord + JsonSchema + 'static>(source: Source, example: Value) -> Operation {
    let definition = Definition {
        name: "changes",
        path: "/v1/changes",
        summary: "The changes since a cursor, oldest first: new and modified records.",
        when: "Use it to copy or audit the whole service; for a part of it use a tool with filters.",
        description: "Poll with the cursor of the last answer to receive every change exactly once. `hasMore` says whether more changes are available \
                    now. `from` and `to` are the range of `seq` that a page covers; consecutive ranges join without gaps, so you can prove that nothing was \
                    skipped (internal changes that readers do not see have a `seq`, too, and are left out). Cursors survive restarts, rebuilds and upgrades. \
                    A page may be shorter than `limit` while `hasMore` is true. With `start=newest` a page ends at `cursor`, if it is given: the `older` of \
                    the page after it. As NDJSON, with one change per line, the next cursor is in the header `Next-Cursor`, `older` in \
                    `Older-Cursor`, and `note` in `Answer-Note`.",
        price: source.price_of_records(),
        list: "changes",
        errors: &[ErrorCode::CursorInvalid, ErrorCode::FilterChanged, ErrorCode::AsOfInvalid],
        example,
        ..Definition::read()
    };
    let mut operation = Operation::define::<PageRequest, Changes<R>, _, _>(definition, move |call, arguments| {
        answer((source, R::COMPARED), call, arguments)
    });
    source.document_redaction(&mut operation);
    operation
}

/// Example arguments that give an answer for every service.
#[must_use]
pub fn example() -> Value {
    json!({ "start": "earliest", "limit": 10 })
}

/// Answers with a page. `compared`: see [`ChangeRecord::COMPARED`].
pub(crate) async fn answer((source, compared): (Source, &[&str]), call: Call, request: PageRequest) -> Result<Answer, Problem> {
    let (ctx, mut notes) = (&call.context, Vec::new());
    request.check(&call)?;
    let limit = request.limit_of(&call);
    let mut at = position::position(ctx, &source, request.as_of.as_deref()).await?;
    let mut end = None;
    let after = match &request.cursor {
        Some(text) => {
            let seq = cursor::decode(&ctx.secrets, source.service, "", text)?;
            if seq > at.last {
                at = catch_up(ctx, &source, seq, at, request.as_of.is_some()).await?;
            }
            if request.start.is_some() {
                let upto = *end.insert(seq.min(at.seq));
                newest(&Feeds::of(ctx).reader(&source, Arc::clone(&at.view)), upto, limit).await?
            } else {
                seq
            }
        }
        None if request.is_newest(&call) => newest(&Feeds::of(ctx).reader(&source, Arc::clone(&at.view)), at.seq, limit).await?,
        None => start(ctx, &source, request.start.as_deref(), &at).await?,
    };
    let hidden_to = sample(&call, &source, &at, Seq(0), &mut notes).await?;
    let after = after.max(hidden_to);
    // A page with the last changes leads to those before it that the caller may see. No read tells whether any of them is shown.
    let is_newest = end.is_some() || (request.cursor.is_none() && request.is_newest(&call));
    let older = (is_newest && after > hidden_to).then(|| cursor::encode(&ctx.secrets, source.service, after, ""));
    let deadline = request.deadline();
    let redaction = source.redaction_for(&call);
    let (reader, page, redacted) = loop {
        let reader = Feeds::of(ctx).reader(&source, Arc::clone(&at.view));
        let end = end.unwrap_or(at.seq);
        let page = if is_newest {
            newest_page(&reader, after, end, limit).await?
        } else {
            reader.page(after, end, limit).await.map_err(store_problem)?
        };
        let redacted = match redaction {
            Some(redaction) => Some(redacted_lines(redaction, &reader, &page, at.free_window()).await?),
            None => None,
        };
        // Internal changes, and changes that the caller may not see, are not shown, but the page covers them.
        let shown = redacted.as_ref().map_or(page.shown, Vec::len);
        if shown > 0 || page.to < at.seq {
            break (reader, page, redacted);
        }
        match later(ctx, &source, &at, deadline).await? {
            Some(later) => at = later,
            None => break (reader, page, redacted),
        }
    };
    let (mut shown, mut without_before) = (redacted, 0);
    let free_after = if compared.is_empty() { Seq(0) } else { sample(&call, &source, &at, Seq(0), &mut Vec::new()).await? };
    if shown.is_none() && free_after > Seq(0) {
        let mut lines = lines(&reader, &page).await?;
        for (_, line) in &mut lines {
            if let Some(hidden) = without_unseen((&source, compared), &at, line, free_after).await? {
                (*line, without_before) = (hidden, without_before + 1);
            }
        }
        shown = Some(lines);
    }
    let without_before = without_before.to_string();
    let has_more = page.to < at.seq;
    notes.extend(page_notes(ctx, &source, &at, request.limit_note(&call, has_more)).await?);
    let note = Some(notes.join("; ")).filter(|note| !note.is_empty());
    let (from, to, window) = (page.from.to_string(), page.to.to_string(), at.free_window().etag_input());
    let mut inputs = vec![
        RENDERING,
        source.service,
        &from,
        &to,
        if has_more { "more" } else { "end" },
        note.as_deref().unwrap_or_default(),
        call.caller.tier.as_str(),
        call.form.as_str(),
    ];
    // What a redaction shows depends on the day, and what is hidden of the versions before on the time.
    inputs.extend(shown.as_ref().map(|_| window.as_str()));
    inputs.push(&without_before);
    inputs.extend(older.as_deref());
    let etag = etag(&*at.view, &inputs);
    let next_cursor = cursor::encode(&ctx.secrets, source.service, page.to, "");
    let body = if matches_etag(call.if_none_match.as_deref(), &etag) {
        Body::NotModified
    } else if call.form == Form::Lines || call.form.has_events() {
        let lines = match shown {
            Some(shown) => shown,
            None => lines(&reader, &page).await?,
        };
        metrics::count_published(source.service, lines.len());
        if call.form == Form::Lines {
            Body::Lines { items: lines.into_iter().map(|(_, line)| line).collect(), older, note }
        } else {
            let updated = last_recorded(&call, &source, &at, page.to).await?;
            let event = |(seq, data)| Event { id: cursor::encode(&ctx.secrets, source.service, seq, ""), data };
            let from = cursor::encode(&ctx.secrets, source.service, after, "");
            Body::Events { from, older, items: lines.into_iter().map(event).collect(), updated, note }
        }
    } else {
        metrics::count_published(source.service, shown.as_ref().map_or(page.shown, Vec::len));
        // With `asOf`, a cursor may be after the requested position.
        let completeness = Feeds::of(ctx).completeness(&source, at.view.as_ref(), page.to.min(at.last), at.last).await?;
        let info = PageInfo {
            cursor: next_cursor.clone(),
            older,
            has_more,
            from: page.from,
            to: page.to,
            through_date: completeness.through_date,
            snapshot_count: completeness.snapshot_count,
            note,
        };
        let changes = match shown {
            Some(shown) => shown.into_iter().map(|(_, line)| line).collect(),
            None => page.parts,
        };
        Body::Parts(splice(changes, &info)?)
    };
    Ok(Answer { body, etag, next_cursor, has_more, status: 200 })
}

/// The changes of a page that a caller sees under a redaction, with their seq.
async fn redacted_lines(redaction: &Redaction, reader: &FeedReader, page: &Page, window: FreeWindow) -> Result<Vec<(Seq, Bytes)>, Problem> {
    let mut shown = Vec::new();
    for (seq, line) in lines(reader, page).await? {
        shown.extend(redaction.change(&line, window)?.map(|line| (seq, line)));
    }
    Ok(shown)
}

/// Builds the answer in pieces: the changes of the page as JSON, and the JSON around them.
fn splice(changes: Vec<Bytes>, info: &PageInfo) -> Result<Vec<Bytes>, Problem> {
    let mut parts = Vec::with_capacity(changes.len() * 2 + 2);
    parts.push(Bytes::from_static(b"{\"changes\":["));
    for (i, part) in changes.into_iter().enumerate() {
        if i > 0 {
            parts.push(Bytes::from_static(b","));
        }
        parts.push(part);
    }
    let mut rest = vec![b']', b','];
    let written = serde_json::to_vec(info).map_err(|error| {
        tracing::error!(%error, "an answer cannot be written as JSON");
        Problem::new(ErrorCode::Internal, "the answer could not be written")
    })?;
    // The object's opening brace was written before the array.
    rest.extend_from_slice(written.get(1..).unwrap_or_default());
    parts.push(Bytes::from(rest));
    Ok(parts)
}

/// Reads the changes of a page one by one, with their seq.
async fn lines(reader: &FeedReader, page: &Page) -> Result<Vec<(Seq, Bytes)>, Problem> {
    let mut lines = Vec::with_capacity(page.shown);
    let mut seq = page.from;
    while seq <= page.to {
        let block = reader.block(seq).await.map_err(store_problem)?;
        let last = block.last_seq().min(page.to);
        lines.extend(seq.up_to(last).filter_map(|seq| Some((seq, block.element(seq)?))));
        seq = last.next();
    }
    Ok(lines)
}
