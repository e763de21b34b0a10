const UNUSUAL = /[^a-z\d-]/g;

/**
 * A header's name as services may take it: those that make variables of headers, as CGI, WSGI and PHP do, take
 * `X_Auth_Key_Id` for `X-Auth-Key-Id`.
 */
export function canonicalName(name: string): string {
  return name.toLowerCase().replaceAll(UNUSUAL, '-');
}
