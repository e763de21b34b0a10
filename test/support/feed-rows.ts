import { hash } from 'node:crypto';

/** By what a key is found, and its name. */
export interface FeedRow {
  id: string;
  digest: string;
  previous: string | null;
  name: string;
}

/** A text that is as long as a digest. */
export const digestOf = (text: string) => hash('sha256', text, 'base64url');

/** The row of a key as the feed has it. @param gap what stands behind each comma */
export function lineOf({ id, digest, previous, name }: FeedRow, gap = ''): Buffer {
  const others = [
    name,
    null,
    null,
    null,
    '["VIEWER"]',
    '[]',
    'abcdefghijkl',
    1,
    ...Array.from({ length: 12 }, () => null),
    '',
  ];
  return Buffer.from(`[${[id, digest, previous, ...others].map((value) => JSON.stringify(value)).join(`,${gap}`)}]`);
}
