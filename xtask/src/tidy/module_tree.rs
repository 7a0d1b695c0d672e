//! The modules of a crate, parsed from its sources, and the module that a path leads to.

use std::collections::BTreeMap;

use syn::Item;

use crate::Error;
use crate::tree::Tree;

/// The most re-exports that one path is followed through.
const REEXPORTS_MAX: usize = 16;

/// The index of a module within its crate.
pub(super) type ModuleId = usize;

/// One module: a file, or a `mod name { .. }` within a file.
struct Module {
    file: String,
    parent: Option<ModuleId>,
    children: BTreeMap<String, ModuleId>,
    /// The names that `use` declarations bring in, with the path of each.
    imports: BTreeMap<String, Vec<String>>,
    /// The paths of `use` declarations that end in `*`.
    globs: Vec<Vec<String>>,
    /// The names of the items that the module defines itself.
    defined: Vec<String>,
    items: Vec<Item>,
}

/// The modules of one crate or program, without its tests.
pub(super) struct Crate {
    modules: Vec<Module>,
}

impl Crate {
    /// Parses a crate from its root file and the files of its modules.
    ///
    /// # Errors
    /// When a file cannot be parsed, or the file of a module is missing.
    pub(super) fn read(tree: &Tree, root: &str) -> Result<Self, Error> {
        let mut krate = Self { modules: Vec::new() };
        let folder = root.rsplit_once('/').map_or("", |(folder, _)| folder);
        krate.read_file(tree, root, folder, None)?;
        Ok(krate)
    }

    /// The modules with their items.
    pub(super) fn modules(&self) -> impl Iterator<Item = (ModuleId, &[Item])> {
        self.modules.iter().enumerate().map(|(id, module)| (id, module.items.as_slice()))
    }

    /// The file of a module.
    pub(super) fn file(&self, module: ModuleId) -> &str {
        &self.modules[module].file
    }

    /// Whether a module contains another one.
    pub(super) fn is_ancestor(&self, module: ModuleId, of: ModuleId) -> bool {
        std::iter::successors(self.modules[of].parent, |id| self.modules[*id].parent).any(|id| id == module)
    }

    /// The module that a path leads to: the module itself, or the one that defines the item. `None` for a path out of the crate.
    pub(super) fn resolve(&self, from: ModuleId, path: &[String]) -> Option<ModuleId> {
        self.follow(from, path, REEXPORTS_MAX)
    }

    fn follow(&self, from: ModuleId, path: &[String], reexports: usize) -> Option<ModuleId> {
        let (first, mut rest) = path.split_first()?;
        let mut at = match first.as_str() {
            "crate" => 0,
            "self" => from,
            "super" => self.modules[from].parent?,
            // The first name of a path is looked up in the module itself; what is not there is another crate, a type or a local name.
            name => return self.named(from, name, rest, reexports, false),
        };
        while let Some((_, after)) = rest.split_first().filter(|(name, _)| *name == "super") {
            (at, rest) = (self.modules[at].parent?, after);
        }
        match rest.split_first() {
            None => Some(at),
            Some((name, rest)) => self.named(at, name, rest, reexports, true),
        }
    }

    /// Follows a name within a module. `is_sure`: the path says that the name is in this module.
    fn named(&self, at: ModuleId, name: &str, rest: &[String], reexports: usize, is_sure: bool) -> Option<ModuleId> {
        let module = &self.modules[at];
        if let Some(child) = module.children.get(name) {
            return match rest.split_first() {
                None => Some(*child),
                Some((name, rest)) => self.named(*child, name, rest, reexports, true),
            };
        }
        if module.defined.iter().any(|known| known == name) {
            return Some(at);
        }
        let fewer = reexports.checked_sub(1)?;
        if let Some(import) = module.imports.get(name).filter(|import| import.first().is_none_or(|first| first != name)) {
            return self.follow(at, &[import.as_slice(), rest].concat(), fewer);
        }
        for glob in &module.globs {
            let found = self.follow(at, glob, fewer).filter(|target| *target != at && self.modules[*target].knows(name));
            if let Some(target) = found {
                return self.named(target, name, rest, fewer, true);
            }
        }
        is_sure.then_some(at)
    }

    fn read_file(&mut self, tree: &Tree, path: &str, folder: &str, parent: Option<ModuleId>) -> Result<ModuleId, Error> {
        let wrong = |error: syn::Error| {
            let start = error.span().start();
            Error::Form { path: path.to_owned(), reason: format!("line {}: {error}", start.line) }
        };
        let items = syn::parse_file(tree.must(path)?).map_err(wrong)?.items;
        self.read_module(tree, path, folder, parent, items)
    }

    /// Reads a module. `folder` is where the files of its child modules are.
    fn read_module(
        &mut self,
        tree: &Tree,
        path: &str,
        folder: &str,
        parent: Option<ModuleId>,
        items: Vec<Item>,
    ) -> Result<ModuleId, Error> {
        let id = self.modules.len();
        let items: Vec<Item> = items.into_iter().filter(|item| !is_of_tests(attributes(item))).collect();
        let mut module = Module {
            file: path.to_owned(),
            parent,
            children: BTreeMap::new(),
            imports: BTreeMap::new(),
            globs: Vec::new(),
            defined: items.iter().filter_map(defined_name).collect(),
            items: Vec::new(),
        };
        for item in &items {
            if let Item::Use(item) = item
                && item.leading_colon.is_none()
            {
                module.add_use(&[], &item.tree);
            }
        }
        self.modules.push(module);
        for item in &items {
            let Item::Mod(item) = item else { continue };
            let name = item.ident.to_string();
            let child = match &item.content {
                Some((_, items)) => self.read_module(tree, path, &format!("{folder}/{name}"), Some(id), items.clone())?,
                None => {
                    let (file, below) = module_file(tree, path, folder, &name, &item.attrs);
                    self.read_file(tree, &file, &below, Some(id))?
                }
            };
            self.modules[id].children.insert(name, child);
        }
        self.modules[id].items = items;
        Ok(id)
    }
}

impl Module {
    fn knows(&self, name: &str) -> bool {
        self.children.contains_key(name) || self.imports.contains_key(name) || self.defined.iter().any(|known| known == name)
    }

    fn add_use(&mut self, before: &[String], tree: &syn::UseTree) {
        let mut add = |name: String, path: Vec<String>| {
            self.imports.insert(name, path);
        };
        match tree {
            syn::UseTree::Path(path) => {
                let before = [before, &[path.ident.to_string()]].concat();
                self.add_use(&before, &path.tree);
            }
            syn::UseTree::Name(name) if name.ident == "self" => add(before.last().cloned().unwrap_or_default(), before.to_vec()),
            syn::UseTree::Name(name) => add(name.ident.to_string(), [before, &[name.ident.to_string()]].concat()),
            syn::UseTree::Rename(rename) if rename.ident == "self" => add(rename.rename.to_string(), before.to_vec()),
            syn::UseTree::Rename(rename) => add(rename.rename.to_string(), [before, &[rename.ident.to_string()]].concat()),
            syn::UseTree::Glob(_) => self.globs.push(before.to_vec()),
            syn::UseTree::Group(group) => group.items.iter().for_each(|tree| self.add_use(before, tree)),
        }
    }
}

/// The file of a module that is declared without content, and the folder of its child modules.
fn module_file(tree: &Tree, declared_in: &str, folder: &str, name: &str, attributes: &[syn::Attribute]) -> (String, String) {
    let given = attributes.iter().find_map(|attribute| match &attribute.meta {
        syn::Meta::NameValue(pair) if pair.path.is_ident("path") => match &pair.value {
            syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(text), .. }) => Some(text.value()),
            _ => None,
        },
        _ => None,
    });
    if let Some(given) = given {
        let mut parts: Vec<&str> = declared_in.split('/').collect();
        parts.pop();
        for part in given.split('/') {
            match part {
                ".." => drop(parts.pop()),
                part => parts.push(part),
            }
        }
        let file = parts.join("/");
        let below = file.rsplit_once('/').map_or("", |(folder, _)| folder).to_owned();
        return (file, below);
    }
    let below = format!("{folder}/{name}");
    let inside = format!("{below}/mod.rs");
    if tree.text(&inside).is_some() { (inside, below) } else { (format!("{below}.rs"), below) }
}

/// Whether an item is only compiled for tests.
fn is_of_tests(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        syn::Meta::List(list) if list.path.is_ident("cfg") => {
            list.tokens.to_string().split(|c: char| !c.is_alphanumeric()).any(|word| word == "test")
        }
        _ => false,
    })
}

fn attributes(item: &Item) -> &[syn::Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

/// The name of an item that is not a module.
fn defined_name(item: &Item) -> Option<String> {
    let name = match item {
        Item::Const(item) => &item.ident,
        Item::Enum(item) => &item.ident,
        Item::Fn(item) => &item.sig.ident,
        Item::Macro(item) => item.ident.as_ref()?,
        Item::Static(item) => &item.ident,
        Item::Struct(item) => &item.ident,
        Item::Trait(item) => &item.ident,
        Item::TraitAlias(item) => &item.ident,
        Item::Type(item) => &item.ident,
        Item::Union(item) => &item.ident,
        _ => return None,
    };
    Some(name.to_string())
}
