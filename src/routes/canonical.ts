/** A value in the one form in which it is compared, or why it has none. */
export type Canonical<Value = string> = { readonly value: Value } | { readonly refusal: string };

/** A token (RFC 9110, 5.6.2). */
const METHOD = /^[!#$%&'*+.^_`|~\dA-Za-z-]+$/;

/** A method as it is compared. Case counts (RFC 9110, 9.1), but as some servers ignore it, lower case is refused. */
export function canonicalMethod(text: string): Canonical {
  if (!METHOD.test(text)) return { refusal: 'the method is not a token' };
  return /[a-z]/.test(text) ? { refusal: 'the method is not in upper case' } : { value: text };
}
