//! Links between pages of the repository.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::file;

/// Collects the Markdown pages below a directory; generated files, packages and hidden directories are left out.
pub(crate) fn collect_pages(directory: &Path, pages: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if path.is_dir() && !name.starts_with('.') && !["target", "node_modules"].contains(&name) {
            collect_pages(&path, pages);
        } else if name.ends_with(".md") {
            pages.push(path);
        }
    }
}

/// Returns the lines of a page outside code blocks.
fn prose(text: &str) -> impl Iterator<Item = &str> {
    let mut is_code = false;
    text.lines().filter(move |line| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        !is_code && !is_fence
    })
}

/// Returns the anchors that GitHub gives to the headings of a page.
fn anchors(text: &str) -> BTreeSet<String> {
    let headings = prose(text).filter_map(|line| line.strip_prefix('#').map(|rest| rest.trim_start_matches('#').trim()));
    let is_kept = |character: &char| character.is_alphanumeric() || ['-', '_', ' '].contains(character);
    headings.map(|heading| heading.to_lowercase().chars().filter(is_kept).collect::<String>().replace(' ', "-")).collect()
}

/// Returns the targets of a page's links, without those that leave the repository.
fn targets(text: &str) -> Vec<String> {
    let mut targets = Vec::new();
    for line in prose(text) {
        for rest in line.split("](").skip(1) {
            let target = rest.split(')').next().unwrap();
            if !target.contains("://") && !target.starts_with("mailto:") {
                targets.push(target.to_owned());
            }
        }
    }
    targets
}

/// Proves that every relative link of every page leads to a file, and to a heading where it names one.
#[test]
fn relative_links_lead_somewhere() {
    let mut pages = Vec::new();
    collect_pages(&file("."), &mut pages);
    assert!(pages.len() > 50, "{}", pages.len());
    let mut broken = Vec::new();
    for page in pages {
        let text = fs::read_to_string(&page).unwrap();
        for target in targets(&text) {
            let (path, anchor) = target.split_once('#').unwrap_or((&target, ""));
            let linked = if path.is_empty() { page.clone() } else { page.parent().unwrap().join(path) };
            let has_anchor = || anchor.is_empty() || fs::read_to_string(&linked).is_ok_and(|text| anchors(&text).contains(anchor));
            if !linked.exists() || !has_anchor() {
                broken.push(format!("{}: {target}", page.display()));
            }
        }
    }
    assert_eq!(broken, Vec::<String>::new());
}

/// Proves that every page of the documentation is linked from another page, except decisions, which are listed by their folder.
#[test]
fn every_page_is_linked() {
    let mut pages = Vec::new();
    collect_pages(&file("."), &mut pages);
    let mut linked = BTreeSet::new();
    for page in &pages {
        for target in targets(&fs::read_to_string(page).unwrap()) {
            let path = page.parent().unwrap().join(target.split('#').next().unwrap());
            if path.is_file() && path.canonicalize().unwrap() != page.canonicalize().unwrap() {
                linked.insert(path.canonicalize().unwrap());
            }
        }
    }
    let docs = file("ops/docs").canonicalize().unwrap();
    let is_listed = |page: &PathBuf| page.starts_with(docs.join("decisions")) || linked.contains(page);
    let mut own: Vec<PathBuf> = Vec::new();
    collect_pages(&docs, &mut own);
    let unlinked: Vec<PathBuf> = own.into_iter().filter(|page| !is_listed(page)).collect();
    assert_eq!(unlinked, Vec::<PathBuf>::new());
}

/// Proves that the README stays short: details belong into ops/docs.
#[test]
fn the_readme_is_short() {
    let lines = crate::text("README.md").lines().count();
    assert!(lines <= 150, "the README has {lines} lines, at most 150 are allowed");
}
