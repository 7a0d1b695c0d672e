//! Functions that add to a text: a line to sorted lines, an item to a list, a section to a TOML file, a row to a table. Each returns the new
//! text, formatted like rustfmt does, or an error that says what it did not find.

use crate::layout;

/// The line width of rustfmt.toml.
const WIDTH: usize = 140;

/// Returns the module that a line declares.
pub(crate) fn module_line(line: &str) -> Option<&str> {
    ["pub(crate) ", "pub "].iter().find_map(|seen| line.strip_prefix(seen)).unwrap_or(line).strip_prefix("mod ")?.strip_suffix(';')
}

/// Adds a line to the first consecutive lines for which `key` returns a key, in the order of the keys.
pub(crate) fn line<'a>(text: &'a str, new: &'a str, key: impl Fn(&'a str) -> Option<&'a str>) -> Result<String, String> {
    let mut lines: Vec<&str> = text.lines().collect();
    let wanted = key(new).ok_or_else(|| format!("\"{new}\" does not match the lines"))?;
    let start = lines.iter().position(|line| key(line).is_some()).ok_or_else(|| format!("has nothing like \"{new}\""))?;
    let run = lines.iter().skip(start).take_while(|line| key(line).is_some());
    let before = run.take_while(|line| key(line).is_some_and(|known| known < wanted)).count();
    lines.insert(start + before, new);
    Ok(joined(&lines))
}

/// Adds lines before the first line that `is_next` accepts, and before its comments. Without such a line they are added after the last line
/// that `after` accepts.
pub(crate) fn lines_before(
    text: &str,
    new: &[&str],
    is_next: impl Fn(&str) -> bool,
    after: impl Fn(&str) -> bool,
) -> Result<String, String> {
    let mut lines: Vec<&str> = text.lines().collect();
    let at = match lines.iter().position(|line| is_next(line)) {
        Some(next) => next - lines.iter().take(next).rev().take_while(|line| line.trim_start().starts_with("//")).count(),
        None => 1 + lines.iter().rposition(|line| after(line)).ok_or("holds none of its kind")?,
    };
    lines.splice(at..at, new.iter().copied());
    Ok(joined(&lines))
}

/// Adds an item to the first list after `head`. `place` returns its index among the existing items.
pub(crate) fn item(text: &str, head: &str, new: &str, place: impl Fn(&[&str]) -> usize) -> Result<String, String> {
    let list = layout::list(text, head)?;
    if list.inner.contains("//") {
        return Err(format!("{head} holds comments: add \"{new}\" by hand"));
    }
    let mut items: Vec<&str> = list.items().map(|(_, item)| item).collect();
    items.insert(place(&items).min(items.len()), new);
    let (before, after) = (text.get(..list.open).unwrap_or_default(), text.get(list.close..).unwrap_or_default());
    let (above, line) = before.split_at(before.rfind('\n').map_or(0, |end| end + 1));
    let indent = line.len() - line.trim_start().len();
    let tail = after.lines().next().unwrap_or_default().len();
    let flat = items.join(", ");
    let was_flat = !list.inner.contains('\n');
    if was_flat && line.len() + flat.len() + tail <= WIDTH {
        return Ok(format!("{before}{flat}{after}"));
    }
    // If the value fits on a line of its own, it is written there.
    if let Some((name, value)) = line.rsplit_once("= ").filter(|(name, _)| was_flat && !name.is_empty())
        && indent + 4 + value.len() + flat.len() + tail <= WIDTH
    {
        return Ok(format!("{above}{name}=\n{:width$}{value}{flat}{after}", "", width = indent + 4));
    }
    // Otherwise one item per line; a value on a line of its own moves back to the line of its name.
    let head = above.trim_end().strip_suffix('=').filter(|_| was_flat && line.trim_start().starts_with('&'));
    let (before, indent) =
        head.map_or((before.to_owned(), indent), |head| (format!("{head}= {}", line.trim_start()), indent.saturating_sub(4)));
    let rows: String = items.iter().map(|item| format!("{:width$}{item},\n", "", width = indent + 4)).collect();
    Ok(format!("{before}\n{rows}{:indent$}{after}", ""))
}

/// Adds `[GROUP.NAME]` to the sections of a group, sorted by name. The first section of a group documents its keys; a new first section takes
/// these comments over.
pub(crate) fn section(text: &str, group: &str, name: &str, values: &[(&str, &str)]) -> Result<String, String> {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let name_of = |line: &str| line.strip_prefix('[')?.strip_suffix(']')?.strip_prefix(group)?.strip_prefix('.').map(str::to_owned);
    let heads: Vec<(usize, String)> = lines.iter().enumerate().filter_map(|(at, line)| Some((at, name_of(line)?))).collect();
    let (Some((first, _)), Some((last, _))) = (heads.first(), heads.last()) else { return Err(format!("holds no section of {group}")) };
    let body_end = |at: usize| at + lines.iter().skip(at).take_while(|line| !line.is_empty()).count();
    let mut new = vec![format!("[{group}.{name}]")];
    let at = match heads.iter().find(|(_, known)| known.as_str() > name) {
        None => {
            new.insert(0, String::new());
            new.extend(values.iter().map(|(key, value)| format!("{key} = {value}")));
            body_end(*last)
        }
        Some((next, _)) if next == first => {
            let end = body_end(*first);
            let mut words: Vec<String> = Vec::new();
            let documented: Vec<String> = lines.splice(first + 1..end, []).collect();
            let mut plain = Vec::new();
            for line in documented {
                if line.starts_with('#') {
                    words.push(line);
                    continue;
                }
                let key = line.split(' ').next().unwrap_or_default();
                new.append(&mut words);
                new.extend(values.iter().filter(|(known, _)| *known == key).map(|(key, value)| format!("{key} = {value}")));
                plain.push(line);
            }
            lines.splice(first + 1..first + 1, plain);
            new.push(String::new());
            *first
        }
        Some((next, _)) => {
            new.extend(values.iter().map(|(key, value)| format!("{key} = {value}")));
            new.push(String::new());
            next - lines.iter().take(*next).rev().take_while(|line| line.starts_with('#')).count()
        }
    };
    lines.splice(at..at, new);
    Ok(joined(&lines))
}

/// Adds a row to the table whose rows begin with the names of `order`, at the position of its name in `order`.
pub(crate) fn row(text: &str, name: &str, new: &str, order: &[&str]) -> Result<String, String> {
    let mut lines: Vec<&str> = text.lines().collect();
    let rank = |name: &str| order.iter().position(|known| *known == name);
    let wanted = rank(name).ok_or_else(|| format!("\"{name}\" has no place"))?;
    let rows: Vec<(usize, usize)> = lines.iter().enumerate().filter_map(|(at, line)| Some((at, rank(layout::row_name(line)?)?))).collect();
    let after = rows.iter().rev().find(|(_, rank)| *rank < wanted).map(|(at, _)| at + 1);
    let at = after.or(rows.first().map(|(at, _)| *at)).ok_or("holds no table of topics")?;
    lines.insert(at, new);
    Ok(joined(&lines))
}

fn joined<T: AsRef<str>>(lines: &[T]) -> String {
    lines.iter().map(|line| format!("{}\n", line.as_ref())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn module(line: &str) -> Option<&str> {
        line.strip_prefix("pub ").unwrap_or(line).strip_prefix("mod ")?.strip_suffix(';')
    }

    /// Proves that a line is added only to the first group of lines: at its start, within it and at its end.
    #[test]
    fn lines_in_order() {
        let text = "//! x\n\nmod b;\npub mod d;\n\nmod a;\n";
        assert_eq!(line(text, "mod a;", module).unwrap(), "//! x\n\nmod a;\nmod b;\npub mod d;\n\nmod a;\n");
        assert_eq!(line(text, "pub mod c;", module).unwrap(), "//! x\n\nmod b;\npub mod c;\npub mod d;\n\nmod a;\n");
        assert_eq!(line(text, "mod e;", module).unwrap(), "//! x\n\nmod b;\npub mod d;\nmod e;\n\nmod a;\n");
        assert!(line("fn x() {}\n", "mod e;", module).is_err());
    }

    /// Proves that lines are added before the comments of the next line.
    #[test]
    fn lines_before_comments() {
        let text = "/// A.\nconst A;\n/// C.\nconst C;\n\nrest\n";
        let add = |next: &str| lines_before(text, &["/// N.", "const N;"], |line| line == next, |line| line.starts_with("const"));
        assert_eq!(add("const C;").unwrap(), "/// A.\nconst A;\n/// N.\nconst N;\n/// C.\nconst C;\n\nrest\n");
        assert_eq!(add("none").unwrap(), "/// A.\nconst A;\n/// C.\nconst C;\n/// N.\nconst N;\n\nrest\n");
    }

    /// Proves that a list is written on one line, on a line of its own, or with one item per line, as it fits.
    #[test]
    fn items_as_they_fit() {
        let add = |text: &str, new: &str| item(text, "ALL: &[X] =", new, |items| items.iter().filter(|known| **known < new).count());
        assert_eq!(add("const ALL: &[X] = &[a, c];\n", "b").unwrap(), "const ALL: &[X] = &[a, b, c];\n");
        assert_eq!(add("const ALL: &[X] = &[\n    a,\n    c,\n];\n", "d").unwrap(), "const ALL: &[X] = &[\n    a,\n    c,\n    d,\n];\n");
        let (long, longer) = ("x".repeat(114), "x".repeat(130));
        assert_eq!(
            add(&format!("const ALL: &[X] = &[{long}];\n"), "abcdef").unwrap(),
            format!("const ALL: &[X] =\n    &[abcdef, {long}];\n")
        );
        assert_eq!(
            add(&format!("const ALL: &[X] = &[{longer}];\n"), "a").unwrap(),
            format!("const ALL: &[X] = &[\n    a,\n    {longer},\n];\n")
        );
        assert_eq!(
            add(&format!("const ALL: &[X] =\n    &[{longer}];\n"), "abc").unwrap(),
            format!("const ALL: &[X] = &[\n    abc,\n    {longer},\n];\n")
        );
        let call = item("fn all() {\n    vec![a::b(), c::d()]\n}\n", "fn all()", "b::c()", |_| 1).unwrap();
        assert_eq!(call, "fn all() {\n    vec![a::b(), b::c(), c::d()]\n}\n");
        assert!(add("const ALL: &[X] = &[\n    a, // why\n];\n", "b").is_err() && add("const NONE;", "b").is_err());
    }

    /// Proves that sections are sorted, and that the first one has the comments for its group.
    #[test]
    fn sections_in_order() {
        let text = "# All alike.\n[g.b]\n# What x is.\nx = 1\ny = 2\n\n# Of d.\n[g.d]\nx = 3\n\n[h]\nz = 1\n";
        let add = |name: &str| section(text, "g", name, &[("x", "8"), ("y", "9")]).unwrap();
        let c = "# All alike.\n[g.b]\n# What x is.\nx = 1\ny = 2\n\n[g.c]\nx = 8\ny = 9\n\n# Of d.\n[g.d]\nx = 3\n\n[h]\nz = 1\n";
        assert_eq!(add("c"), c);
        let e = "# All alike.\n[g.b]\n# What x is.\nx = 1\ny = 2\n\n# Of d.\n[g.d]\nx = 3\n\n[g.e]\nx = 8\ny = 9\n\n[h]\nz = 1\n";
        assert_eq!(add("e"), e);
        let a = "# All alike.\n[g.a]\n# What x is.\nx = 8\ny = 9\n\n[g.b]\nx = 1\ny = 2\n\n# Of d.\n[g.d]\nx = 3\n\n[h]\nz = 1\n";
        assert_eq!(add("a"), a);
    }

    /// Proves that a row is added after the rows before it in the list.
    #[test]
    fn rows_in_order() {
        let text = "| topic |\n|---|\n| `a` | 1 |\n| `c` | 1 |\n\n| `other` | 1 |\n";
        let order = ["0", "a", "b", "c", "d"];
        assert!(row(text, "b", "| `b` |", &order).unwrap().contains("| `a` | 1 |\n| `b` |\n| `c` | 1 |\n"));
        assert!(row(text, "d", "| `d` |", &order).unwrap().contains("| `c` | 1 |\n| `d` |\n\n"));
        assert!(row(text, "0", "| `0` |", &order).unwrap().contains("|---|\n| `0` |\n| `a` | 1 |\n"));
        assert!(row("", "b", "| `b` |", &order).is_err() && row(text, "x", "| `x` |", &order).is_err());
    }
}
