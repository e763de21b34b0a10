import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { text } from 'node:stream/consumers';

/** The headers that Chromium sends when a user opens an address. */
export const OPENS_PAGE = {
  accept: 'text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8',
  'sec-fetch-site': 'none',
  'sec-fetch-mode': 'navigate',
  'sec-fetch-dest': 'document',
} as const;

/** The headers of a form sent from the same host. */
export const SENDS_FORM = {
  ...OPENS_PAGE,
  'sec-fetch-site': 'same-origin',
  'content-type': 'application/x-www-form-urlencoded',
} as const;

export interface Page {
  status: number;
  headers: IncomingMessage['headers'];
  /** Names and values as received, without the date and the request id. */
  raw: string[];
  body: string;
}

interface Asked {
  method?: string;
  headers?: Readonly<Record<string, string | readonly string[] | undefined>>;
  body?: string;
}

/** Sends a request with only these headers, apart from those of the connection. */
export async function browse(url: string, { method = 'GET', headers = {}, body }: Asked = {}): Promise<Page> {
  const given = Object.entries(headers).filter(([, value]) => value !== undefined);
  const sent = request(url, { method, agent: false, headers: Object.fromEntries(given) as Record<string, string> });
  sent.end(body);
  const [answer] = (await once(sent, 'response')) as [IncomingMessage];
  const pairs = answer.rawHeaders.flatMap((name, index) =>
    index % 2 === 0 && !/^(?:date|x-request-id)$/i.test(name) ? [`${name}: ${answer.rawHeaders[index + 1]}`] : [],
  );
  return { status: answer.statusCode!, headers: answer.headers, raw: pairs, body: await text(answer) };
}

/** Submits the sign-in form. @param headers such as another `host` */
export function sendKey(url: string, key: string, headers: Asked['headers'] = {}, to = '/'): Promise<Page> {
  const body = new URLSearchParams({ key, to }).toString();
  return browse(`${url}/.svc-api/sign-in`, { method: 'POST', headers: { ...SENDS_FORM, ...headers }, body });
}

/** The cookies that a response sets, as a `Cookie` header. */
export function cookiesOf({ headers }: Page): string {
  const set = headers['set-cookie'] ?? [];
  return set
    .filter((cookie) => !cookie.includes('Max-Age=0'))
    .map((cookie) => cookie.split(';', 1)[0])
    .join('; ');
}

/** The address that a page redirects to. */
export function nextOf({ body }: Page): string | undefined {
  return /http-equiv="refresh" content="0; url=([^"]*)"/.exec(body)?.[1]?.replaceAll('&amp;', '&');
}
