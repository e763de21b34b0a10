import { styleText } from 'node:util';
import {
  createPrompt,
  isEnterKey,
  isSpaceKey,
  isTabKey,
  makeTheme,
  useEffect,
  useKeypress,
  usePrefix,
  useRef,
  useState,
} from '@inquirer/core';
import figures from '@inquirer/figures';
import { checkbox, confirm, input, password, search, select } from '@inquirer/prompts';
import { presentError } from '../errors.ts';
import {
  type Choice,
  ChoiceList,
  type FoundChoices,
  isLowScreen,
  listSize,
  type ManyQuestion,
  type Prompts,
  screenWidth,
} from './prompt.ts';
import { shorten, widthOf } from '../wrapped.ts';
import { formatList } from '../../keys/basics/index.ts';

/** The most chosen items that the answer names. */
const MAX_NAMES = 10;

/** How far a key moves, depending on the number of visible choices. */
const MOVES: Record<string, (size: number) => number> = {
  up: () => -1,
  down: () => 1,
  pageup: (size) => -size,
  pagedown: (size) => size,
};

/**
 * Asks for some of many choices: typing searches, Tab chooses the marked one, and Enter finishes. The space bar also
 * chooses, unless a text is being typed. No key chooses more than one.
 */
const searchCheckbox = createPrompt<readonly Choice[], ManyQuestion>((config, done) => {
  const theme = makeTheme();
  const [status, setStatus] = useState<'loading' | 'idle' | 'done'>('idle');
  const [term, setTerm] = useState('');
  const [isTyping, setTyping] = useState(false);
  const [problem, setProblem] = useState('');
  const [, draw] = useState({});
  const { current: list } = useRef(new ChoiceList(config.found));
  /** Actions waiting for the result of a search. */
  const waiting = useRef<(() => void)[]>([]);
  const latest = useRef<Promise<FoundChoices> | undefined>(undefined);
  const prefix = usePrefix({ status, theme });

  useEffect(() => {
    const redraw = () => draw({});
    process.stderr.on('resize', redraw);
    return () => process.stderr.off('resize', redraw);
  }, []);

  const act = (action: () => void) => {
    if (latest.current) waiting.current.push(action);
    else action();
  };
  const searchFor = async (text: string) => {
    const search = config.search(text);
    [latest.current, waiting.current] = [search, []];
    setStatus('loading');
    const [found, error] = await search.then(
      (result) => [result, ''] as const,
      (cause: unknown) => [{ choices: [], hasMore: false }, presentError(cause).message] as const,
    );
    if (latest.current !== search) return;
    latest.current = undefined;
    list.show(found);
    setProblem(error);
    setStatus('idle');
    for (const action of waiting.current) action();
    draw({});
  };

  useKeypress((key, line) => {
    const isChoosing = isTabKey(key) || (isSpaceKey(key) && !isTyping);
    const move = MOVES[key.name];
    if (isEnterKey(key) || isChoosing || move) {
      // These keys are not text, so the line is restored.
      line.clearLine(0);
      line.write(term);
    }
    if (isEnterKey(key)) {
      act(() => {
        setStatus('done');
        done(list.chosen);
      });
    } else if (isChoosing) {
      act(() => list.toggle());
      draw({});
    } else if (move) {
      act(() => list.move(move(listSize())));
      setTyping(false);
      draw({});
    } else if (line.line !== term) {
      setTyping(line.line !== '');
      setTerm(line.line);
      void searchFor(line.line);
    }
  });

  const message = theme.style.message(config.message, status);
  const { chosen } = list;
  const names = chosen.slice(0, MAX_NAMES).map(({ name }) => name);
  if (status === 'done') {
    const answer = formatList(chosen.length > MAX_NAMES ? [...names, `${chosen.length - MAX_NAMES} more`] : names);
    return `${prefix} ${message} ${theme.style.answer(answer)}`;
  }
  const width = screenWidth() - 1;
  const items = list.window(listSize()).map(({ choice, isActive, isChosen }) => {
    const icon = isChosen ? figures.circleFilled : figures.circle;
    const text = `${isActive ? figures.pointer : ' '}${icon} ${choice.name} (${choice.details})`;
    return isActive ? theme.style.highlight(shorten(text, width)) : shorten(text, width);
  });
  const nothing = theme.style.error(problem || 'Nothing matches.');
  const notes = [
    ...(list.hasMore ? ['More match: type to find them.'] : []),
    ...(chosen.length > 0 ? [`${chosen.length} chosen: ${names.join(', ')}`] : []),
  ].map((note) => styleText('dim', shorten(note, width)));
  const help = linesOf(['type to search', '↑↓ navigate', `${isTyping ? 'tab' : 'space'} select`, '⏎ submit'], width);
  const body = [
    ...(items.length > 0 ? items : [nothing]),
    ...(isLowScreen() ? notes.slice(-1) : [' ', ...notes, ...help.map(theme.style.help)]),
  ];
  return [`${prefix} ${message} ${theme.style.answer(term)}`, body.join('\n')];
});

/** Hints in lines up to a width. */
function linesOf(hints: readonly string[], width: number): string[] {
  const lines: string[] = [];
  for (const hint of hints) {
    const line = [...lines.slice(-1), hint].join(' • ');
    if (lines.length > 0 && widthOf(line) <= width) lines[lines.length - 1] = line;
    else lines.push(hint);
  }
  return lines;
}

const ON_STDERR = { output: process.stderr } as const;

/** Lists that are redrawn with each key. No key chooses all. */
export const RICH_PROMPTS: Prompts = {
  input: (question) => input(question, ON_STDERR),
  secret: (message) => password({ message }, ON_STDERR),
  confirm: (message) => confirm({ message, default: false }, ON_STDERR),
  select: (question) => select({ ...question, pageSize: listSize() }, ON_STDERR),
  checkbox: (question) =>
    checkbox({ ...question, pageSize: listSize(), shortcuts: { all: null, invert: null } }, ON_STDERR),
  search: (question) => search({ ...question, pageSize: listSize() }, ON_STDERR),
  searchMany: (question) => searchCheckbox(question, ON_STDERR),
};
