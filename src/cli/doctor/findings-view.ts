import type { Finding } from '../../store/inspection/finding.ts';
import { countOf } from '../views/count.ts';

const [STATUS_WIDTH, CHECK_WIDTH] = ['failure'.length + 2, 'ENVIRONMENT'.length + 2];
const INDENT = ' '.repeat(STATUS_WIDTH + CHECK_WIDTH);

/** What checks have found, a line each, with what to do below it. */
export function linesOf(findings: readonly Finding[]): string[] {
  const count = (status: Finding['status']) => findings.filter((finding) => finding.status === status).length;
  const [failures, warnings] = [count('failure'), count('warning')];
  return [
    ...findings.flatMap(({ status, check, message, remedy }) => [
      `${status.padEnd(STATUS_WIDTH)}${check.padEnd(CHECK_WIDTH)}${message.replaceAll('\n', ' ')}`,
      ...(remedy === null ? [] : [`${INDENT}${remedy}`]),
    ]),
    failures + warnings === 0
      ? 'Nothing is wrong.'
      : `${countOf(failures, 'failure', 'failures')}, ${countOf(warnings, 'warning', 'warnings')}.`,
  ];
}
