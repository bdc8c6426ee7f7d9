//! Trims the metadata of objects before they are stored. Users may write a MiB of labels and
//! annotations that dbplane does not read.

use std::borrow::Cow;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;

use super::names::{digest, is_finalizer};
use crate::api::ObjectMeta;

/// The prefix of dbplane's own annotations.
const OWN: &str = "dbplane.dev/";
/// A longer foreign text is kept as a digest, because it is only compared.
const LONGEST_TEXT: usize = 64;
/// The maximum size of an object's metadata in bytes, roughly.
const MOST: usize = 32 * 1024;
/// The maximum size of the controller's reference in metadata that is too large.
const LARGEST_OWNER: usize = 1024;
/// The overhead of an entry in a list or a map, roughly.
const ENTRY: usize = 64;

/// The kind of controller that compares all annotations of a Compute.
const SET: &str = "ReadReplicaSet";

/// Drops unused metadata. A `selected` kind keeps its labels, and its annotations if a set controls
/// the object.
pub fn trim(meta: &mut ObjectMeta, selected: bool) {
    meta.managed_fields = None;
    if !selected {
        meta.labels = None;
    }
    let owners = meta.owner_references.iter().flatten();
    let of_a_set = selected
        && owners
            .clone()
            .any(|owner| owner.kind == SET && owner.controller == Some(true));
    if let Some(annotations) = &mut meta.annotations {
        annotations.retain(|key, _| of_a_set || key.starts_with(OWN));
        for (_, value) in annotations
            .iter_mut()
            .filter(|(key, _)| !key.starts_with(OWN))
        {
            if let Cow::Owned(kept) = text(value) {
                *value = kept;
            }
        }
    }
}

/// The kept form of a foreign text: the text itself, or its digest if it is long.
pub fn text(text: &str) -> Cow<'_, str> {
    if text.len() > LONGEST_TEXT {
        Cow::Owned(format!("sha256:{}", digest(text)))
    } else {
        Cow::Borrowed(text)
    }
}

/// Reduces metadata that is too large to the minimum.
///
/// # Errors
/// If the metadata is too large, with a message for the user.
pub fn fits(meta: &mut ObjectMeta) -> Result<(), String> {
    let maps = [&meta.labels, &meta.annotations]
        .into_iter()
        .flatten()
        .flatten();
    let entries = maps.map(|(key, value)| key.len() + value.len());
    let finalizers = meta.finalizers.iter().flatten().map(String::len);
    let owners = meta.owner_references.iter().flatten().map(size_of);
    let size: usize = entries
        .chain(finalizers)
        .chain(owners)
        .map(|size| size + ENTRY)
        .sum();
    if size <= MOST {
        return Ok(());
    }
    (meta.labels, meta.annotations) = (None, None);
    // The set of a Compute has to know that the Compute exists.
    let controller = meta
        .owner_references
        .take()
        .into_iter()
        .flatten()
        .find(|owner| owner.controller == Some(true));
    meta.owner_references = controller
        .filter(|owner| size_of(owner) <= LARGEST_OWNER)
        .map(|owner| vec![owner]);
    meta.finalizers
        .iter_mut()
        .for_each(|finalizers| finalizers.retain(|finalizer| is_finalizer(finalizer)));
    Err(format!(
        "metadata: its labels, finalizers, owner references and the annotations that dbplane reads take {} KiB, and dbplane keeps {} KiB",
        size.div_ceil(1024),
        MOST / 1024
    ))
}

fn size_of(owner: &OwnerReference) -> usize {
    owner.api_version.len() + owner.kind.len() + owner.name.len() + owner.uid.len()
}

#[cfg(test)]
mod tests;
