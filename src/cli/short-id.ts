/** The shorter id of a command in our own program; undefined if it has none. */
export function shortId({ id, isAtTop }: { readonly id: string; readonly isAtTop?: unknown }): string | undefined {
  return isAtTop === true ? id.replace(/^apikey:/, '') : undefined;
}
