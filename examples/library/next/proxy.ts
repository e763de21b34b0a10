import { type NextRequest, NextResponse } from 'next/server';
import { keys } from './keys';

/** Runs before the pages and handlers that match `matcher`. */
export async function proxy(request: NextRequest): Promise<Response> {
  const address = request.headers.get('x-real-ip') ?? undefined;
  const checked = await (await keys()).check(request, { permission: 'SERVICES:READ_ANY', address });
  return checked.ok ? NextResponse.next({ headers: checked.headers }) : checked.response();
}

export const config = { matcher: '/private/:path*' };
