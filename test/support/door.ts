import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { text } from 'node:stream/consumers';

/** The headers of Chromium if somebody opens a page by its address. */
export const OPENS_PAGE = {
  accept: 'text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8',
  'sec-fetch-site': 'none',
  'sec-fetch-mode': 'navigate',
  'sec-fetch-dest': 'document',
} as const;

/** The headers if a page of the same host sends a form. */
export const SENDS_FORM = {
  ...OPENS_PAGE,
  'sec-fetch-site': 'same-origin',
  'content-type': 'application/x-www-form-urlencoded',
} as const;

export interface Page {
  status: number;
  headers: IncomingMessage['headers'];
  /** Names and values, as they came, without the date and the id of the request. */
  raw: string[];
  body: string;
}

interface Asked {
  method?: string;
  headers?: Readonly<Record<string, string | readonly string[] | undefined>>;
  body?: string;
}

/** Sends a request with these headers, and no others but those of the connection. */
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

/** Sends the form on the page to sign in. @param headers such as another `host` */
export function sendKey(url: string, key: string, headers: Asked['headers'] = {}, to = '/'): Promise<Page> {
  const body = new URLSearchParams({ key, to }).toString();
  return browse(`${url}/.svc-api/sign-in`, { method: 'POST', headers: { ...SENDS_FORM, ...headers }, body });
}

/** The cookies that an answer sets, as they are sent back. */
export function cookiesOf({ headers }: Page): string {
  const set = headers['set-cookie'] ?? [];
  return set
    .filter((cookie) => !cookie.includes('Max-Age=0'))
    .map((cookie) => cookie.split(';', 1)[0])
    .join('; ');
}

/** The address that the page of an answer leads on to. */
export function nextOf({ body }: Page): string | undefined {
  return /http-equiv="refresh" content="0; url=([^"]*)"/.exec(body)?.[1]?.replaceAll('&amp;', '&');
}
