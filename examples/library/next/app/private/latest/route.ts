export const dynamic = 'force-dynamic';

/** Stands behind proxy.ts. */
export function GET(): Response {
  return Response.json({ latest: 'sda-1' });
}
