import { NUMBER, TOKEN } from './placeholders.ts';
import type { Workload } from './workloads.ts';

const JSON_TYPE = 'Content-Type: application/json';
const PLAIN_HEAD = ['User-Agent: svc-api-bench', 'Accept: application/json'];
/** Chrome's headers for a page with Apollo Client, and a proxy's headers, which differ in each request. */
const LONG_HEAD = [
  'X-Real-IP: 203.0.113.7',
  'X-Forwarded-For: 203.0.113.7',
  'X-Forwarded-Proto: https',
  `X-Request-ID: 5f3759df-86b2-4c1e-9d0a-00${NUMBER}`,
  `traceparent: 00-4bf92f3577b34da6a3ce92${NUMBER}-00f067${NUMBER}-01`,
  'sec-ch-ua-platform: "Linux"',
  'User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36',
  'Accept: application/graphql-response+json,application/json;q=0.9',
  'sec-ch-ua: "Chromium";v="142", "Google Chrome";v="142", "Not_A Brand";v="99"',
  'sec-ch-ua-mobile: ?0',
  'Origin: https://app.example.com',
  'Sec-Fetch-Site: same-site',
  'Sec-Fetch-Mode: cors',
  'Sec-Fetch-Dest: empty',
  'Referer: https://app.example.com/items',
  'Accept-Encoding: gzip, deflate, br, zstd',
  'Accept-Language: en-GB,en;q=0.9,de;q=0.8',
];

/** A complete request, with TOKEN and NUMBER. */
export function requestOf(
  { body, message, target = body ? '/graphql' : '/', token = TOKEN, headers = [], hasLongHead }: Workload,
  port: number,
): string {
  const sent = body ?? message;
  const text = sent && JSON.stringify(sent);
  const head = [
    `${text === undefined ? 'GET' : 'POST'} ${target} HTTP/1.1`,
    `Host: 127.0.0.1:${port}`,
    ...headers,
    ...(hasLongHead ? LONG_HEAD : PLAIN_HEAD),
    `Authorization: Bearer ${token}`,
    ...(text === undefined ? [] : [JSON_TYPE, `Content-Length: ${Buffer.byteLength(text)}`]),
  ];
  return `${head.join('\r\n')}\r\n\r\n${text ?? ''}`;
}
