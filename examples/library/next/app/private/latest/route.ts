export const dynamic = 'force-dynamic';

/** Protected by proxy.ts. */
export function GET(): Response {
  return Response.json({ latest: 'sda-1' });
}
