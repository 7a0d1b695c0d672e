//! The check of arguments, through the query, the path and the body.

use std::borrow::Cow;

use ::arguments::Checker;

use super::*;

/// Proves that every kind of invalid query is refused, with the parameter's name and a helpful text.
#[tokio::test]
async fn bad_queries() {
    let fixture = Fixture::new(|_| {});
    let table = [
        ("limit=0", "limit", "limit: 0 is less than 1"),
        ("limit=301", "limit", "limit: 301 is more than 300"),
        ("limit=-1", "limit", "less than 1"),
        ("limit=ten", "limit", "limit: \"ten\" is not a whole number"),
        ("limit=1.0", "limit", "not a whole number"),
        ("limit=03", "limit", "limit: \"03\" is not a whole number"),
        ("limit=3px", "limit", "limit: \"3px\" is not a whole number"),
        ("min_amount=00.5", "min_amount", "not a number"),
        ("keyword=[%22ab%22,%22cd%22]", "keyword", "keyword: \"[\"ab\",\"cd\"]\" is not one value"),
        ("utmsource=x", "utmsource", "unknown parameter"),
        ("limit=%2B5", "limit", "not a whole number"),
        ("limit=5%20", "limit", "not a whole number"),
        ("limit=99999999999999999999999", "limit", "out of range"),
        ("limit=", "limit", "limit is empty"),
        ("limit", "limit", "limit is empty"),
        ("limit=1&limit=2", "limit", "limit is given twice"),
        ("limit=1&limit=1", "limit", "given twice"),
        ("category=", "category", "category is empty"),
        ("category=%20", "category", "category is empty"),
        ("category=toys", "category", "\"toys\" is not one of food, vehicles"),
        ("category=vehicels", "category", "did you mean \"vehicles\"?"),
        ("keyword=x", "keyword", "keyword: is shorter than 2 characters"),
        ("q=x", "keyword", "shorter than 2"),
        ("q=ab&keyword=cd", "keyword", "keyword is given twice"),
        ("keyword=ab&q=cd", "keyword", "q and keyword are the same parameter, given twice"),
        ("q=", "q", "q is empty"),
        ("keyword=%ff%fe", "keyword", "not UTF-8"),
        ("from=2026-02-30", "from", "is not a date (YYYY-MM-DD)"),
        ("from=yesterday", "from", "not a date"),
        ("min_amount=NaN", "min_amount", "not a number"),
        ("min_amount=inf", "min_amount", "not a number"),
        ("min_amount=1e999", "min_amount", "not a number"),
        ("live=yes", "live", "not true or false"),
        ("ids=1,,2", "ids", "ids is empty"),
        ("ids=1,b", "ids", "\"b\" is not a whole number"),
        ("ids=-1", "ids", "ids.0: -1 is less than 0"),
        ("limti=5", "limti", "unknown parameter \"limti\", did you mean \"limit\"?"),
        ("apikey=5", "apikey", "did you mean \"api_key\"?"),
        ("zzzzzzzzzzzzzz=5", "zzzzzzzzzzzzzz", "unknown parameter \"zzzzzzzzzzzzzz\""),
        ("=5", "", "unknown parameter \"\""),
    ];
    for (query, parameter, detail) in table {
        let read = get(&fixture, &format!("/fake/api/items?{query}")).await;
        assert_eq!(read.status, 400, "{query}: {}", read.body);
        assert_eq!(read.problem(), ("parameter-invalid".to_owned(), parameter.to_owned()), "{query}: {}", read.body);
        let words = read.json()["detail"].as_str().unwrap().to_owned();
        assert!(words.contains(detail), "{query}: {words}");
    }
}

/// Proves that valid queries are converted to the types of the schema, for all notations of lists and for aliases.
#[tokio::test]
async fn good_queries() {
    let fixture = Fixture::new(|_| {});
    let table = [
        ("", json!({})),
        ("?limit=300&category=food&live=1", json!({"limit": 300, "category": "food", "live": true})),
        ("?q=a+b%2Cc&min_amount=1e3", json!({"keyword": "a b,c", "min_amount": 1000.0})),
        ("?ids=1,2&ids=3&from=2024-02-29", json!({"ids": [1, 2, 3], "from": "2024-02-29"})),
        ("?minAmount=2.5", json!({"min_amount": 2.5})),
        ("?&limit=7&", json!({"limit": 7})),
        ("?limit=7&utm_source=a&utm_campaign=b&utm_source=c", json!({"limit": 7})),
        ("?limit=7&gclid=a&fbclid=b&srsltid=c&_gl=d&mc_cid=e&gad_source=1", json!({"limit": 7})),
        ("?ids[]=1&ids[]=2", json!({"ids": [1, 2]})),
        ("?ids%5B0%5D=1&ids%5B1%5D=2&ids=3", json!({"ids": [1, 2, 3]})),
        ("?limit=%227%22&live='true'&ids=[1,2]&ids=%5B3%5D", json!({"limit": 7, "live": true, "ids": [1, 2, 3]})),
        ("?category=FOOD&live=True", json!({"category": "food", "live": true})),
    ];
    for (query, echo) in table {
        let read = get(&fixture, &format!("/fake/api/items{query}")).await;
        assert_eq!(read.status, 200, "{query}: {}", read.body);
        assert_eq!(read.json()["echo"], echo, "{query}");
    }
    let read = get(&fixture, "/fake/api/items/a%2Fb%20c").await;
    assert_eq!(read.json(), json!({"id": "a/b c"}));
    let read = get(&fixture, "/fake/api/items/a?id=b").await;
    assert_eq!(read.problem(), ("parameter-invalid".to_owned(), "id".to_owned()), "a path parameter is not taken twice");
}

/// Proves that JSON arguments pass the same validation: whole floats are integers, nulls are removed, aliases are not accepted twice.
#[test]
fn json_arguments() {
    let service = service(&Arc::new(Notify::new()));
    let checker = Checker::new(&service.operations[0]).unwrap();
    let check = |arguments: Value| checker.json(arguments.as_object().unwrap().clone(), ErrorCode::ParameterInvalid);
    assert_eq!(check(json!({"limit": 3.0, "ids": [1.0], "q": "ab", "live": null})), Ok(json!({"limit": 3, "ids": [1], "keyword": "ab"})));
    let table = [
        (json!({"limit": 3.5}), "limit", "3.5 is not of type integer"),
        (json!({"limit": "03"}), "limit", "limit: \"03\" is not a whole number"),
        (json!({"limit": "3px"}), "limit", "limit: \"3px\" is not a whole number"),
        (json!({"limit": ""}), "limit", "limit is empty"),
        (json!({"limit": true}), "limit", "true is not of type integer"),
        (json!({"limit": 0}), "limit", "less than 1"),
        (json!({"q": "ab", "keyword": "cd"}), "keyword", "given twice"),
        (json!({"min_amount": 1, "minAmount": 2}), "min_amount", "given twice"),
        (json!({"minamount": 1}), "minamount", "unknown parameter"),
        (json!({"category": 5}), "category", "\"5\" is not one of"),
        (json!({"wat": 5}), "wat", "unknown parameter \"wat\""),
        (json!({"ids": [1, {"a": "b"}]}), "ids.1", "ids.1: "),
    ];
    for (arguments, parameter, detail) in table {
        let problem = check(arguments.clone()).unwrap_err();
        assert_eq!((problem.code, problem.parameter.as_str()), (ErrorCode::ParameterInvalid, parameter), "{arguments}");
        assert!(problem.detail.contains(detail), "{arguments}: {}", problem.detail);
    }
    let long = check(json!({"category": "x".repeat(10_000)})).unwrap_err();
    assert!(long.detail.len() < 300, "a caller's own words are cut");
}

/// Proves that an unknown value of the argument that names what is sold is refused before all other arguments, that any other problem of an unpaid call is
/// not and is about what the call names, also if another argument is invalid, and that an operation that sells one thing refuses none.
#[test]
fn what_is_sold() {
    let service = service(&Arc::new(Notify::new()));
    let mut sold = service.operations[0].clone().sold_by("category", &[]);
    sold.price = Price::PerCall { micros: 1, free_from: Tier::Pro };
    let checker = Checker::new(&sold).unwrap();
    let check = |query: &[(&'static str, &'static str)]| {
        checker.strings(query.iter().map(|(name, value)| (Cow::from(*name), Cow::from(*value)))).map_err(|problem| problem.parameter)
    };
    for query in [&[("category", "toys")][..], &[("wat", "1"), ("category", "toys"), ("limit", "0")]] {
        assert_eq!(check(query), Err("category".to_owned()), "{query:?}");
    }
    assert_eq!(check(&[("wat", "1"), ("category", "Food")]), Err("wat".to_owned()));
    assert!(check(&[("category", "Food")]).is_ok() && check(&[]).is_ok());
    let named = |query: &[(&'static str, &'static str)]| {
        let pairs: Vec<(Cow<'_, str>, Cow<'_, str>)> = query.iter().map(|(name, value)| (Cow::from(*name), Cow::from(*value))).collect();
        checker.sold(&pairs).map(str::to_owned)
    };
    for (query, expected) in [
        (&[("category", " Food ")][..], Some("food")),
        (&[("wat", "1"), ("category", "food"), ("limit", "0")], Some("food")),
        (&[("category", "toys")], None),
        (&[("limit", "0")], None),
    ] {
        assert_eq!(named(query).as_deref(), expected, "{query:?}");
    }
    let problem_of = |parameter: &'static str| Problem::parameter(parameter, "wrong");
    assert!(sold.refuses_unpaid(&problem_of("category")) && !sold.refuses_unpaid(&problem_of("limit")));
    sold.sold_by = "";
    assert!(!sold.refuses_unpaid(&problem_of("category")) && !sold.refuses_unpaid(&problem_of("")));
    assert!(service.operations[0].refuses_unpaid(&problem_of("limit")));
}

/// Proves that nested fields pass the same validation: whole floats are integers, an invalid field is named with its path, in `parameter` and in the
/// detail, and a write-only value (a webhook's URL) is in no error.
#[test]
fn fields_within_fields() {
    let operations = filings::service().service.operations;
    let check = |name: &str, arguments: Value| {
        let operation = operations.iter().find(|operation| operation.name == name).unwrap();
        Checker::new(operation).unwrap().json(arguments.as_object().unwrap().clone(), ErrorCode::BodyInvalid)
    };
    let saved = check("save_filter", json!({"name": "a", "filter": {"minEventScore": 50.0, "form": ["8-K"]}}));
    assert_eq!(saved.map(|saved| saved["filter"]["minEventScore"].to_string()), Ok("50".to_owned()));
    let saved = check("save_filter", json!({"name": "a", "filter": {"min_event_score": "50"}}));
    assert_eq!(saved.map(|saved| saved["filter"].clone()), Ok(json!({"minEventScore": 50})), "a field has two names, as a parameter has");
    for forms in [json!("8-K, 10-K"), json!(["8-K", "10-K"])] {
        let saved = check("save_filter", json!({"name": "a", "filter": {"form": forms}}));
        assert_eq!(saved.map(|saved| saved["filter"]["form"].clone()), Ok(json!(["8-K", "10-K"])));
        let asked = check("whats_new_since", json!({"form": forms}));
        assert_eq!(asked, Ok(json!({"form": ["8-K", "10-K"]})));
    }
    let s3cr3t = "https://example.org/s3cr3t";
    let table = [
        ("save_filter", json!({"filter": {}}), "name", "name is missing"),
        ("save_filter", json!({"name": "a"}), "filter", "filter is missing"),
        ("save_filter", json!({"name": "a", "filter": "8-K"}), "filter", "not of type object"),
        ("save_filter", json!({"name": "a", "filter": {"topic": "x"}}), "filter.topic", "unknown field \"topic\" in filter"),
        ("save_filter", json!({"name": "a", "filter": {"min_event_score": 101}}), "filter.minEventScore", "101 is more than 100"),
        ("save_filter", json!({"name": "a", "filter": {"min_event_score": 1, "minEventScore": 2}}), "filter.minEventScore", "given twice"),
        ("save_filter", json!({"name": "a", "filter": {"form": true}}), "filter.form", "filter.form: true is not of type array"),
        (
            "save_filter",
            json!({"name": "a", "filter": {"minEventScore": 101}}),
            "filter.minEventScore",
            "filter.minEventScore: 101 is more than 100",
        ),
        ("whats_new_since", json!({"form": ["-"]}), "form.0", "form.0: \"-\" has no letter and no digit"),
        ("watch", json!({"webhook": s3cr3t}), "cik", "cik is missing"),
        ("watch", json!({"cik": "1", "webhook": [s3cr3t]}), "webhook", "webhook: the value is not of type string"),
        ("watch", json!({"cik": "1", "webhook": {"url": s3cr3t}}), "webhook", "not of type string"),
        ("watch", json!({"cik": "1", "webhook": s3cr3t.repeat(100)}), "webhook", "longer than 2000"),
        ("watch", json!({"cik": "1", "url": s3cr3t}), "url", "unknown parameter \"url\""),
    ];
    for (name, arguments, parameter, detail) in table {
        let problem = check(name, arguments.clone()).unwrap_err();
        assert_eq!((problem.code, problem.parameter.as_str()), (ErrorCode::BodyInvalid, parameter), "{arguments}");
        assert!(problem.detail.contains(detail) && !problem.detail.contains("s3cr3t"), "{arguments}: {}", problem.detail);
    }
}

/// Proves that a name with capitals in a row has one other spelling, as a parameter and as a field of the items of a list, and no further one.
#[test]
fn names_with_capitals_in_a_row() {
    let operations = aviation::service().service.operations;
    let check = |name: &str, arguments: Value| {
        let operation = operations.iter().find(|operation| operation.name == name).unwrap();
        Checker::new(operation).unwrap().json(arguments.as_object().unwrap().clone(), ErrorCode::BodyInvalid)
    };
    let item = |field: &str| json!({ "aircraft": [{ "tail": "N1", "make": "Piper", "model": "PA-28-140", field: 1262.5 }] });
    for field in ["hoursTIS", "hours_tis"] {
        let asked = check("recurring_due", json!({ "make": "Piper", "model": "PA-28-140", field: 1262.5 }));
        assert_eq!(asked.map(|read| read["hoursTIS"].clone()), Ok(json!(1262.5)), "{field}");
        let asked = check("assess", item(field));
        assert_eq!(asked.map(|read| read["aircraft"][0]["hoursTIS"].clone()), Ok(json!(1262.5)), "{field}");
    }
    for field in ["hoursTis", "hourstis", "HoursTIS", "HOURS_TIS", "hours_t_i_s", "hours_TIS"] {
        assert_eq!(check("assess", item(field)).unwrap_err().parameter, format!("aircraft.0.{field}"));
        let asked = check("recurring_due", json!({ "make": "Piper", "model": "PA-28-140", field: 1262.5 }));
        assert_eq!(asked.unwrap_err().parameter, field);
    }
}

/// Proves that a value in another type or notation is read the same on every surface, where it has exactly one reading.
#[test]
fn one_reading_on_every_surface() {
    let operations = filings::service().service.operations;
    let checker = |name: &str| Checker::new(operations.iter().find(|operation| operation.name == name).unwrap()).unwrap();
    let (feed, save) = (checker("whats_new_since"), checker("save_filter"));
    let read = |name: &str, given: &Value| -> Vec<Result<Value, Problem>> {
        let fields = || serde_json::Map::from_iter([(name.to_owned(), given.clone())]);
        let own = |read: Result<Value, Problem>| read.map(|read| read[name].clone());
        let saved = serde_json::Map::from_iter([("name".to_owned(), json!("a")), ("filter".to_owned(), fields().into())]);
        let saved_as_text = serde_json::Map::from_iter([
            ("name".to_owned(), json!("a")),
            ("filter".to_owned(), Value::from(Value::from(fields()).to_string())),
        ]);
        let in_filter = |read: Result<Value, Problem>| read.map(|read| read["filter"][name].clone());
        let mut all = vec![
            own(feed.json(fields(), ErrorCode::BodyInvalid)),
            own(feed.tool(fields())),
            in_filter(save.body(saved.clone(), std::iter::empty())),
            in_filter(save.tool(saved)),
            in_filter(save.tool(saved_as_text)),
        ];
        if let Some(text) = given.as_str() {
            all.push(own(feed.strings(std::iter::once((name.into(), text.into())))));
        }
        all
    };
    let forms = || json!(["8-K", "4"]);
    for (name, given, value) in [
        ("form", json!("8-K,4"), forms()),
        ("form", json!(["8-K", "4"]), forms()),
        ("form", json!("[\"8-K\",\"4\"]"), forms()),
        ("form", json!(" [ \"8-K\" , \"4\" ] "), forms()),
        ("form", json!("[\"8-K\",4]"), forms()),
        ("form", json!("['8-K', '4']"), forms()),
        ("form", json!("[8-K, 4]"), forms()),
        ("form", json!("\"8-K\",\"4\""), forms()),
        ("form", json!("'8-K', 4"), forms()),
        ("form", json!("\"[\\\"8-K\\\",\\\"4\\\"]\""), forms()),
        ("form", json!("\"8-K\""), json!(["8-K"])),
        ("form", json!("'8-K'"), json!(["8-K"])),
        ("form", json!("“8-K”"), json!(["8-K"])),
        ("form", json!(["\"8-K\"", 4]), forms()),
        ("form", json!(4), json!(["4"])),
        ("form", json!([4, 3.0]), json!(["4", "3"])),
        ("cik", json!("320193"), json!("320193")),
        ("cik", json!("0000320193"), json!("0000320193")),
        ("cik", json!("\"320193\""), json!("320193")),
        ("cik", json!(320_193), json!("320193")),
        ("cik", json!(320_193.0), json!("320193")),
        ("minEventScore", json!("50"), json!(50)),
        ("minEventScore", json!(50.0), json!(50)),
        ("minEventScore", json!("\"50\""), json!(50)),
        ("minEventScore", json!("0"), json!(0)),
    ] {
        for (surface, read) in read(name, &given).into_iter().enumerate() {
            assert_eq!(read, Ok(value.clone()), "{name}: {given} on surface {surface}");
        }
    }
    for (name, given, shown) in [
        ("form", json!("[\"8-K\""), "[\"8-K\""),
        ("form", json!("[\"8-K\",\"4"), "[\"8-K\""),
        ("form", json!(["[\"8-K\"", "\"4\"]"]), "[\"8-K\""),
        ("form", json!("{\"a\":1}"), "{\"a\":1}"),
        ("form", json!("[]"), "is empty"),
        ("form", json!(""), "is empty"),
        ("form", json!("8-K,,4"), "is empty"),
        ("form", json!("[true]"), "true"),
        ("form", json!("[\"\"]"), "is empty"),
        ("cik", json!("[\"320193\"]"), "320193"),
        ("cik", json!("[\"320193\""), "320193"),
        ("cik", json!(true), "true"),
        ("cik", json!("\"\""), "is empty"),
        ("cik", json!(" "), "is empty"),
        ("minEventScore", json!("03"), "03"),
        ("minEventScore", json!("50px"), "50px"),
        ("minEventScore", json!("5e1"), "5e1"),
        ("minEventScore", json!("50.0"), "50.0"),
        ("minEventScore", json!(" 50"), " 50"),
        ("minEventScore", json!(""), "is empty"),
        ("minEventScore", json!(true), "true"),
        ("minEventScore", json!("[50]"), "50"),
    ] {
        for (surface, read) in read(name, &given).into_iter().enumerate() {
            let Err(problem) = read else { panic!("{name}: {given} on surface {surface} was taken") };
            // A query has no fields within others. A body names the path of the value, also of an item of a list.
            let path = if (2..5).contains(&surface) { format!("filter.{name}") } else { name.to_owned() };
            let rest = problem.parameter.strip_prefix(&path).unwrap_or_else(|| panic!("{given} on surface {surface}: {problem:?}"));
            let is_item = rest.strip_prefix('.').is_some_and(|index| surface < 5 && index.parse::<usize>().is_ok());
            assert!(rest.is_empty() || is_item, "{given} on surface {surface}: {problem:?}");
            let detail = problem.detail.replace("\\\"", "\"");
            assert!(detail.contains(name) && detail.contains(shown), "{name}: {given} on surface {surface}: {detail}");
        }
    }
}

/// Proves that an empty list is read as an empty object, and that texts that an operation records as they are keep their quotation marks.
#[test]
fn empty_objects_and_recorded_texts() {
    let operations = filings::service().service.operations;
    let save = Checker::new(operations.iter().find(|operation| operation.name == "save_filter").unwrap()).unwrap();
    let saved = save.tool(json!({"name": "a", "filter": []}).as_object().unwrap().clone());
    assert_eq!(saved, Ok(json!({"name": "a", "filter": {}})));
    let service = service(&Arc::new(Notify::new()));
    let make = Checker::new(service.operations.iter().find(|operation| operation.name == "make").unwrap()).unwrap();
    let made = |name: Value| make.json(json!({ "name": name }).as_object().unwrap().clone(), ErrorCode::BodyInvalid);
    assert_eq!(made(json!("\"a\"")), Ok(json!({"name": "\"a\""})));
    assert_eq!(made(json!("[\"a\"]")), Ok(json!({"name": "[\"a\"]"})));
    assert_eq!(made(json!(5)), Ok(json!({"name": "5"})));
}

/// Proves that the fields that workflow hosts add to every tool are ignored in tools alone, and that a misspelt field is still refused.
#[test]
fn fields_of_hosts() {
    let service = service(&Arc::new(Notify::new()));
    let checker = Checker::new(&service.operations[0]).unwrap();
    let given = |more: Value| {
        let mut fields =
            json!({"limit": "3", "toolCallId": "c1", "tool": {"name": "find"}, "sessionId": 7, "action": "x", "chatInput": "hi"});
        fields.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        fields.as_object().unwrap().clone()
    };
    assert_eq!(checker.tool(given(json!({}))), Ok(json!({"limit": 3})));
    for misspelt in ["limti", "toolcallid", "sessionID"] {
        assert_eq!(checker.tool(given(json!({ misspelt: 1 }))).unwrap_err().parameter, misspelt);
    }
    assert_eq!(checker.json(given(json!({})), ErrorCode::BodyInvalid).unwrap_err().code, ErrorCode::BodyInvalid);
}

/// Proves that the items of a list have the types of their schema on every surface that takes JSON, also where the list is a text: a number as text is
/// refused with the path of its field, as it is not in arguments; a field that is null is missing; a misspelt field of an item is refused with the nearest one.
#[test]
fn items_of_lists() {
    let operations = aviation::service().service.operations;
    let checker = |name: &str| Checker::new(operations.iter().find(|operation| operation.name == name).unwrap()).unwrap();
    let (route, tool, recurring) = (checker("assess"), checker("assess_fleet"), checker("recurring_due"));
    let object_of = |given: Value| given.as_object().unwrap().clone();
    let fleet = |more: Value| {
        let mut item = object_of(json!({"tail": "N1", "make": "Cessna", "model": 172, "compliance": [{"ad": "2011-10-09", "hours": 1.5}]}));
        item.extend(object_of(more));
        json!([item])
    };
    let taken = fleet(json!({"hoursTIS": 12, "serial": null, "cycles": null}));
    for given in [taken.clone(), Value::from(taken.to_string())] {
        for read in
            [route.body(object_of(json!({ "aircraft": given })), std::iter::empty()), tool.tool(object_of(json!({ "aircraft": given })))]
        {
            let read = read.unwrap();
            assert_eq!((&read["aircraft"][0]["hoursTIS"], &read["aircraft"][0]["model"]), (&json!(12), &json!("172")));
            assert!(["serial", "cycles"].iter().all(|name| read["aircraft"][0].get(*name).is_none()), "a field that is null is missing");
        }
    }
    assert_eq!(
        recurring.tool(object_of(json!({"make": "a", "model": "b", "hoursTIS": "12"}))).map(|read| read["hoursTIS"].clone()),
        Ok(json!(12.0))
    );
    for (field, path, detail) in [
        (json!({"hoursTIS": "12"}), "hoursTIS", "aircraft.0.hoursTIS: \"12\" is not of type number"),
        (json!({"cycles": "12"}), "cycles", "aircraft.0.cycles: \"12\" is not of type integer"),
        (
            json!({"compliance": [{"ad": "2011-10-09", "terminated": "true"}]}),
            "compliance.0.terminated",
            "aircraft.0.compliance.0.terminated: \"true\" is not of type boolean",
        ),
        (json!({"hoursTIS": -1}), "hoursTIS", "aircraft.0.hoursTIS: -1 is less than 0"),
        (json!({"hoursTis": 12}), "hoursTis", "unknown field \"hoursTis\" in aircraft.0, did you mean \"hoursTIS\"?"),
        (
            json!({"compliance": [{"ad": "2011-10-09", "hour": 1}]}),
            "compliance.0.hour",
            "unknown field \"hour\" in aircraft.0.compliance.0, did you mean \"hours\"?",
        ),
        (json!({"wingspan": 1}), "wingspan", "unknown field \"wingspan\" in aircraft.0"),
        (json!({"wingspan": null}), "wingspan", "unknown field \"wingspan\" in aircraft.0"),
        (json!({"make": null}), "make", "aircraft.0.make is missing"),
        (
            json!({"tail": "N 1"}),
            "tail",
            "aircraft.0.tail: \"N 1\" does not have the described form: Tail number: letters, digits and dashes.",
        ),
    ] {
        let given = fleet(field);
        let read = [given.clone(), Value::from(given.to_string())].map(|given| object_of(json!({ "aircraft": given })));
        for (read, code) in [
            (route.body(read[0].clone(), std::iter::empty()), ErrorCode::BodyInvalid),
            (tool.tool(read[0].clone()), ErrorCode::ParameterInvalid),
            (tool.tool(read[1].clone()), ErrorCode::ParameterInvalid),
        ] {
            let problem = read.unwrap_err();
            let path = format!("aircraft.0.{path}");
            assert_eq!((problem.code, problem.parameter.as_str(), problem.detail.as_str()), (code, path.as_str(), detail));
        }
    }
}

/// Proves that an offset whose plus became a blank is read as the offset.
#[test]
fn times_with_an_offset() {
    let operations = filings::service().service.operations;
    let checker = Checker::new(operations.iter().find(|operation| operation.name == "whats_new_since").unwrap()).unwrap();
    let read = |query: &str| checker.strings(form_urlencoded::parse(query.as_bytes())).map(|read| read["asOf"].clone());
    for (query, time) in [
        ("asOf=2026-11-01T00:00:00+00:00", "2026-11-01T00:00:00+00:00"),
        ("asOf=2026-11-01T00:00:00%2B01:30", "2026-11-01T00:00:00+01:30"),
        ("asOf=2026-11-01T00:00:00.250+0100", "2026-11-01T00:00:00.250+0100"),
        ("asOf=2026-11-01T00:00:00-01:00", "2026-11-01T00:00:00-01:00"),
        ("asOf=2026-11-01", "2026-11-01"),
        ("asOf=2026-11-01T00:00:00+05", "2026-11-01T00:00:00+05"),
        ("asOf=2026-11-01t00:00+05:30", "2026-11-01t00:00+05:30"),
        ("asOf=2026-11-01+00:00:00+00:00", "2026-11-01 00:00:00+00:00"),
        ("asOf=2026-11-01+00:00:00Z", "2026-11-01 00:00:00Z"),
        ("asOf=2026-11-01+00:00", "2026-11-01 00:00"),
        ("asOf=a+00:00", "a 00:00"),
    ] {
        assert_eq!(read(query), Ok(json!(time)), "{query}");
    }
}

/// Proves that a list is read from one parameter with commas and from several, in any mixture, and that an empty item and a second single value are
/// refused.
#[test]
fn lists_in_queries() {
    let operations = awards::service().service.operations;
    let operation = operations.iter().find(|operation| operation.name == "whats_changed_since").unwrap();
    let checker = Checker::new(operation).unwrap();
    let read = |query: &str| checker.strings(form_urlencoded::parse(query.as_bytes()));
    for query in ["naics=54,61,23", "naics=54&naics=61&naics=23", "naics=54,61&naics=23", "naics=54%2C%2061,+23"] {
        assert_eq!(read(query), Ok(json!({"naics": ["54", "61", "23"]})), "{query}");
    }
    assert_eq!(
        checker.json(json!({"naics": "54, 61"}).as_object().unwrap().clone(), ErrorCode::ParameterInvalid),
        Ok(json!({"naics": ["54", "61"]}))
    );
    for (query, parameter) in [("naics=54,,61", "naics"), ("naics=54&naics=", "naics"), ("agency=energy&agency=energy", "agency")] {
        assert_eq!(read(query).unwrap_err().parameter, parameter, "{query}");
    }
}

/// Proves that an invalid body is refused with the reason and its position.
#[tokio::test]
async fn bad_bodies() {
    let fixture = Fixture::new(|_| {});
    let table = [
        ("application/json", "{\"name\": \"a\"", 400, "body-invalid", "", "line 1 column"),
        ("application/json", "{\"name\": \"a\"} x", 400, "body-invalid", "", "trailing characters"),
        ("application/json", "[1]", 400, "body-invalid", "", "a JSON object"),
        ("application/json", "[{}]", 400, "body-invalid", "", "a JSON object"),
        ("application/json", " ", 400, "body-invalid", "", "EOF"),
        ("application/json", "[]", 400, "body-invalid", "name", "name is missing"),
        ("application/json; charset=utf-8", " [ ]\n", 400, "body-invalid", "name", "name is missing"),
        ("application/json", "", 400, "body-invalid", "name", "name is missing"),
        ("application/json", "{}", 400, "body-invalid", "name", "name is missing"),
        ("application/json", "{\"name\": null}", 400, "body-invalid", "name", "name is missing"),
        ("application/json", "{\"name\": \"\"}", 400, "body-invalid", "name", "name: is empty"),
        ("application/json", "{\"name\": true}", 400, "body-invalid", "name", "not of type string"),
        ("application/json", "{\"name\": \"a\", \"sise\": 1}", 400, "body-invalid", "sise", "did you mean \"size\"?"),
        ("application/json", "{\"name\": \"a\", \"size\": -1}", 400, "body-invalid", "size", "less than 0"),
        ("application/json", "{\"name\": \"a\", \"name\": \"b\"}", 400, "body-invalid", "name", "name: the field is given twice"),
        (
            "application/json",
            "{\"name\": {\"b\": [1, {\"c\": 1, \"c\": 2}]}}",
            400,
            "body-invalid",
            "name.b.1.c",
            "name.b.1.c: the field is given twice",
        ),
        ("application/json", "{\"name\": {\"b\": 9007199254740993}}", 400, "body-invalid", "name.b", "name.b: the number is beyond"),
        ("application/json", "{\"size\": 1e999}", 400, "body-invalid", "size", "size: the number is beyond"),
        ("text/plain", "{\"name\": \"a\"}", 415, "media-type-unsupported", "", "application/json"),
        ("application/x-www-form-urlencoded", "name=a", 415, "media-type-unsupported", "", "application/json"),
    ];
    for (content_type, body, status, code, parameter, detail) in table {
        let request = ask().method("POST").path("/fake/api/items").header("content-type", content_type).body(body);
        let read = send(&fixture, request).await;
        assert_eq!(read.status, status, "{body}: {}", read.body);
        assert_eq!(read.problem(), (code.to_owned(), parameter.to_owned()), "{body}: {}", read.body);
        assert!(read.json()["detail"].as_str().unwrap().contains(detail), "{body}: {}", read.body);
    }
    let long = format!("{{\"name\": \"{}\"}}", "x".repeat(2000));
    let request = ask().method("POST").path("/fake/api/items").header("content-type", "application/json").body(long);
    let read = send(&fixture, request).await;
    assert_eq!((read.status.as_u16(), read.problem().0.as_str()), (413, "body-too-large"));
    let request = ask().method("POST").path("/fake/api/items?name=a").header("content-type", "application/json").body("{}");
    assert_eq!(send(&fixture, request).await.problem(), ("parameter-invalid".to_owned(), "name".to_owned()));
}
