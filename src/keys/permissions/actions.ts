/** The verb of an action in words, and its extent, which an action of an installation can lack: `sign off`, `own`. */
export function partsOfAction(action: string): { verb: string; extent: string } {
  const [, verb = '', extent = ''] = /^(.*?)(?:_(any|own))?$/.exec(action.toLowerCase())!;
  return { verb: verb.replaceAll(/_+/g, ' ').trim(), extent };
}

/** Leaves out each `X_OWN` whose resource has `X_ANY`, which includes it. */
export function withoutIncluded<Of extends string>(permissions: readonly Of[]): Of[] {
  const all: ReadonlySet<string> = new Set(permissions);
  return permissions.filter((one) => !one.endsWith('_OWN') || !all.has(one.replace(/_OWN$/, '_ANY')));
}
