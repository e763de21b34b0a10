/** Whether proxies ask for decisions at a URL. All of `/auth` is for them, so that none is answered by other rules. */
export function isForProxies(url: string): boolean {
  return url.startsWith('/auth') && (url.length === 5 || url[5] === '/' || url[5] === '?');
}
