/** An address with these fields as its query, without the empty ones. */
export function withQuery(address: string, fields: Readonly<Record<string, string>>): string {
  const given = Object.entries(fields).filter(([, value]) => value !== '');
  return given.length > 0 ? `${address}?${new URLSearchParams(given).toString()}` : address;
}
