/** The shorter id of a command in our own program; undefined for one that has no other. */
export function shortId({ id, isAtTop }: { readonly id: string; readonly isAtTop?: unknown }): string | undefined {
  return isAtTop === true ? id.replace(/^apikey:/, '') : undefined;
}
