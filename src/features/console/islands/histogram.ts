/**
 * Selects several bars of a histogram, by dragging or with Shift and the arrow keys. Each bar links to the page
 * filtered by its time; a selection runs from the start of the first bar to the end of the last.
 */
export function addHistograms(): void {
  for (const plot of document.querySelectorAll<SVGSVGElement>('[data-histogram] svg')) help(plot);
}

function help(plot: SVGSVGElement): void {
  const bars = [...plot.querySelectorAll<SVGAElement>('a')];
  let [from, to] = [bars.length - 1, bars.length - 1];
  let isDragging = false;
  const mark = () => {
    const [first, last] = [Math.min(from, to), Math.max(from, to)];
    for (const [index, bar] of bars.entries())
      bar.classList.toggle('chosen', from !== to && index >= first && index <= last);
  };
  const open = () => {
    const [first, last] = [bars[Math.min(from, to)]!, bars[Math.max(from, to)]!];
    const url = new URL(first.href.baseVal, document.baseURI);
    url.searchParams.set('until', new URL(last.href.baseVal, document.baseURI).searchParams.get('until')!);
    location.assign(url);
  };
  const barAt = (x: number) => {
    const { left, width } = plot.getBoundingClientRect();
    return Math.min(bars.length - 1, Math.max(0, Math.floor(((x - left) / width) * bars.length)));
  };

  // One tab stop: arrow keys move between bars.
  bars[to]!.setAttribute('tabindex', '0');
  const goTo = (index: number, isExtending: boolean) => {
    bars[to]!.setAttribute('tabindex', '-1');
    to = index;
    if (!isExtending) from = to;
    bars[to]!.setAttribute('tabindex', '0');
    bars[to]!.focus();
    mark();
  };
  plot.addEventListener('keydown', (event) => {
    const steps: Readonly<Record<string, number>> = {
      ArrowLeft: Math.max(0, to - 1),
      ArrowRight: Math.min(bars.length - 1, to + 1),
      Home: 0,
      End: bars.length - 1,
    };
    const next = steps[event.key];
    if (next !== undefined) goTo(next, event.shiftKey);
    else if (event.key === 'Enter' && from !== to) open();
    else if (event.key === 'Escape') goTo(to, false);
    else return;
    event.preventDefault();
  });

  plot.addEventListener('dragstart', (event) => event.preventDefault());
  plot.addEventListener('pointerdown', (event) => {
    if (event.button !== 0) return;
    isDragging = true;
    from = to = barAt(event.clientX);
  });
  plot.addEventListener('pointermove', (event) => {
    if (!isDragging) return;
    to = barAt(event.clientX);
    if (from !== to) plot.setPointerCapture(event.pointerId);
    mark();
  });
  const end = () => {
    isDragging = false;
    mark();
  };
  plot.addEventListener('pointercancel', () => {
    to = from;
    end();
  });
  plot.addEventListener('pointerup', () => {
    if (isDragging && from !== to) open();
    isDragging = false;
  });
  // The click after dragging must not follow the link of the last bar.
  plot.addEventListener('click', (event) => from !== to && event.preventDefault());
}
