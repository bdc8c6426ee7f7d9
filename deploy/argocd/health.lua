-- The health of dbplane's resources in Argo CD, the same script for each kind (docs/guide/gitops.md).
local status = obj.status or {}
local conditions = {}
for _, condition in ipairs(status.conditions or {}) do
  conditions[condition.type] = condition
end

local function is(kind, value)
  return conditions[kind] ~= nil and conditions[kind].status == value
end

local function message(kind, otherwise)
  return conditions[kind] ~= nil and conditions[kind].message or otherwise
end

if obj.metadata.deletionTimestamp ~= nil then
  return {status = "Progressing", message = message("Ready", "Being deleted.")}
end
-- First of all: what is declared while it is paused is not looked at.
if is("Paused", "True") then
  return {status = "Suspended", message = message("Paused")}
end
if status.observedGeneration ~= obj.metadata.generation then
  return {status = "Progressing", message = "dbplane has not looked at the latest change yet."}
end
if is("Reconciling", "True") then
  return {status = "Progressing", message = message("Reconciling")}
end
if is("Stalled", "True") then
  return {status = "Degraded", message = message("Stalled")}
end
if is("Ready", "True") then
  -- A compute that works with other settings than declared says so.
  return {status = "Healthy", message = message(is("Synced", "False") and "Synced" or "Ready")}
end
return {status = "Progressing", message = message("Ready", "dbplane has reported nothing yet.")}
