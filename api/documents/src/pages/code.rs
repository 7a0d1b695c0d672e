//! How an operation is called: commands and code, made from its example.

use operation::context::ServiceSettings;
use operation::{Method, Operation, Price};
use pages::shell_quoted;
use serde_json::{Map, Value};

use crate::discovery::example_path;
use crate::plain_text::plain_text;
use crate::tools::tool_call;

/// The ways to call an operation: the name of each, and its text. A tool without a route is called over MCP.
pub(super) fn samples(operation: &Operation, settings: &ServiceSettings) -> Vec<(&'static str, String)> {
    if !operation.has_route() {
        return vec![("curl", mcp(operation, settings))];
    }
    let sample = Sample::of(operation, settings);
    vec![("curl", sample.curl()), ("Python", sample.python()), ("TypeScript", sample.typescript())]
}

/// The command that calls a tool.
fn mcp(operation: &Operation, settings: &ServiceSettings) -> String {
    let accept = "-H 'Content-Type: application/json' -H 'Accept: application/json, text/event-stream'";
    format!("curl '{}/mcp' {accept} -d {}", settings.base_url, shell_quoted(&tool_call(operation).to_string()))
}

/// A call with the example arguments.
struct Sample {
    method: Method,
    url: String,
    /// The arguments of the query.
    query: Vec<(String, String)>,
    /// The arguments of the body; `None` for a call without one.
    body: Option<Value>,
    needs_key: bool,
}

/// The example arguments of an operation that its path does not have.
pub(super) fn outside_path(operation: &Operation) -> Map<String, Value> {
    let fields = operation.example.as_object().into_iter().flatten();
    let fields = fields.filter(|(name, _)| !operation.path.contains(&format!("{{{name}}}")));
    fields.map(|(name, value)| (name.clone(), value.clone())).collect()
}

impl Sample {
    fn of(operation: &Operation, settings: &ServiceSettings) -> Self {
        let rest = outside_path(operation);
        let (query, body) = if operation.method.has_body() {
            (Vec::new(), Some(Value::Object(rest)))
        } else {
            (rest.iter().map(|(name, value)| (name.clone(), plain_text(value))).collect(), None)
        };
        Self {
            method: operation.method,
            url: format!("{}{}", settings.base_url, example_path(operation)),
            query,
            body,
            needs_key: matches!(operation.price, Price::Tier(_)),
        }
    }

    fn curl(&self) -> String {
        let query = form_urlencoded::Serializer::new(String::new()).extend_pairs(&self.query).finish();
        let address = if query.is_empty() { self.url.clone() } else { format!("{}?{query}", self.url) };
        let mut command = "curl".to_owned();
        if matches!(self.method, Method::Patch | Method::Delete) {
            command += &format!(" -X {}", self.method.as_str());
        }
        command += &format!(" {}", shell_quoted(&address));
        if self.needs_key {
            command += " -H \"X-API-Key: $KEY\"";
        }
        if let Some(body) = &self.body {
            command += &format!(" -H 'Content-Type: application/json' -d {}", shell_quoted(&body.to_string()));
        }
        command
    }

    /// Python with the package `requests`.
    fn python(&self) -> String {
        let mut arguments = vec![text(&self.url)];
        if !self.query.is_empty() {
            let pairs = self.query.iter().map(|(name, value)| (name.clone(), value.as_str().into())).collect();
            arguments.push(format!("params={}", python(&Value::Object(pairs))));
        }
        if self.needs_key {
            arguments.push("headers={\"X-API-Key\": os.environ[\"KEY\"]}".to_owned());
        }
        arguments.extend(self.body.iter().map(|body| format!("json={}", python(body))));
        let imports = if self.needs_key { "import os\n\nimport requests" } else { "import requests" };
        let arguments = arguments.join(",\n    ");
        let method = self.method.as_str().to_ascii_lowercase();
        format!("{imports}\n\nanswer = requests.{method}(\n    {arguments},\n)\nanswer.raise_for_status()\nprint(answer.json())")
    }

    fn typescript(&self) -> String {
        let mut lines = vec![format!("const url = new URL({});", text(&self.url))];
        lines.extend(self.query.iter().map(|(name, value)| format!("url.searchParams.set({}, {});", text(name), text(value))));
        let mut headers = Vec::new();
        if self.needs_key {
            headers.push("\"X-API-Key\": process.env.KEY!".to_owned());
        }
        if self.body.is_some() {
            headers.push("\"Content-Type\": \"application/json\"".to_owned());
        }
        let mut options = Vec::new();
        if self.method != Method::Get {
            options.push(format!("method: {}", text(self.method.as_str())));
        }
        if !headers.is_empty() {
            options.push(format!("headers: {{ {} }}", headers.join(", ")));
        }
        options.extend(self.body.iter().map(|body| format!("body: JSON.stringify({body})")));
        let options = if options.is_empty() { String::new() } else { format!(", {{\n  {},\n}}", options.join(",\n  ")) };
        lines.push(format!("const answer = await fetch(url{options});"));
        lines.push("if (!answer.ok) throw new Error(await answer.text());".to_owned());
        lines.push("console.log(await answer.json());".to_owned());
        lines.join("\n")
    }
}

/// A text as a literal of JSON, which is one of Python and of TypeScript, too.
fn text(text: &str) -> String {
    Value::from(text).to_string()
}

/// A JSON value as Python writes it.
fn python(value: &Value) -> String {
    let all = |items: Vec<String>| items.join(", ");
    match value {
        Value::Null => "None".to_owned(),
        Value::Bool(true) => "True".to_owned(),
        Value::Bool(false) => "False".to_owned(),
        Value::Number(_) | Value::String(_) => value.to_string(),
        Value::Array(items) => format!("[{}]", all(items.iter().map(python).collect())),
        Value::Object(fields) => {
            format!("{{{}}}", all(fields.iter().map(|(name, value)| format!("{}: {}", text(name), python(value))).collect()))
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn sample(method: Method, query: &[(&str, &str)], body: Option<Value>, needs_key: bool) -> Sample {
        let query = query.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Sample { method, url: "http://a.example/x".to_owned(), query, body, needs_key }
    }

    /// Proves that a read is called with its query in each language, and that texts are quoted.
    #[test]
    fn reads() {
        let read = sample(Method::Get, &[("q", "it's \"x\""), ("limit", "3")], None, false);
        assert_eq!(read.curl(), "curl 'http://a.example/x?q=it%27s+%22x%22&limit=3'");
        let python = "import requests\n\nanswer = requests.get(\n    \"http://a.example/x\",\n    params={\"limit\": \"3\", \"q\": \"it's \\\"x\\\"\"},\n)\n";
        assert!(
            read.python().starts_with(python) || read.python().contains("params={\"q\": \"it's \\\"x\\\"\", \"limit\": \"3\"}"),
            "{}",
            read.python()
        );
        assert!(read.typescript().contains("url.searchParams.set(\"q\", \"it's \\\"x\\\"\");\n"), "{}", read.typescript());
        assert!(read.typescript().contains("await fetch(url);"));
    }

    /// Proves that a write has its method, its key and its body in each language, and that a quote in a body does not end the text of a shell.
    #[test]
    fn writes() {
        let write = sample(Method::Patch, &[], Some(json!({ "on": true, "none": null, "name": "it's" })), true);
        let curl = write.curl();
        assert!(
            curl.starts_with("curl -X PATCH 'http://a.example/x' -H \"X-API-Key: $KEY\" -H 'Content-Type: application/json' -d '{"),
            "{curl}"
        );
        assert!(curl.contains("it'\\''s"), "{curl}");
        let python = write.python();
        assert!(python.contains("requests.patch(") && python.contains("\"on\": True") && python.contains("\"none\": None"), "{python}");
        assert!(python.contains("os.environ[\"KEY\"]"), "{python}");
        let typescript = write.typescript();
        assert!(
            typescript.contains("method: \"PATCH\"")
                && typescript.contains("body: JSON.stringify({")
                && typescript.contains("process.env.KEY!")
        );
        assert_eq!(sample(Method::Delete, &[("last", "true")], None, false).curl(), "curl -X DELETE 'http://a.example/x?last=true'");
        let post = sample(Method::Post, &[], Some(json!({})), false).curl();
        assert_eq!(post, "curl 'http://a.example/x' -H 'Content-Type: application/json' -d '{}'");
    }
}
