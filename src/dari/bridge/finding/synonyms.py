"""Words that mean the same to whoever looks for a tool; the second language of half of our users among them."""

from __future__ import annotations

from dari.bridge.finding.words import stem

_GROUPS = """
delete remove erase drop 삭제 제거
create make add new 생성 만들 추가
list show enumerate 목록 나열
find search lookup query 검색 찾기 찾아
read open view get load 읽기 읽어 보기 열기
write save store put 쓰기 저장
update edit modify change 수정 변경 편집
directory folder dir 폴더 디렉터리 디렉토리
file document 파일 문서
image picture photo screenshot 이미지 사진 스크린샷 화면
send post message 보내 전송 메시지
run execute launch start 실행 시작
stop end kill close 중지 종료 닫기
url link web website page 링크 웹페이지 페이지
repository repo 저장소 레포
issue ticket bug 이슈 버그
time date clock 시간 시각 날짜
user account 사용자 계정
database db sql 데이터베이스
download fetch 다운로드 받기
upload 업로드 올리기
copy duplicate 복사
move rename 이동 이름
calendar event meeting schedule 일정 회의 캘린더
mail email 메일 이메일
weather forecast 날씨 예보
translate 번역
memory remember note 기억 메모
browser tab 브라우저
click press 클릭
table sheet spreadsheet excel 엑셀 시트
chart graph plot diagram 차트 그래프
branch 브랜치
commit 커밋
code source 코드 소스
test check 시험 테스트 검사
log history 로그 기록 이력
error exception failure 오류 에러
price cost 가격 비용
"""


_TRANSLATED, _LIKE = 0.8, 0.4
"""A Korean word stands for the first English word of its line as if that had been asked for; the rest is a guess."""


def _table() -> dict[str, tuple[tuple[str, float], ...]]:
    table: dict[str, tuple[tuple[str, float], ...]] = {}
    for line in _GROUPS.split("\n"):
        group = [stem(word) for word in line.split()]
        for word in group:
            others = tuple(
                (other, _TRANSLATED if other == group[0] and not word.isascii() else _LIKE)
                for other in group
                if other != word
            )
            table[word] = (*table.get(word, ()), *others)
    return table


SYNONYMS = _table()
"""Word → other words with what they count, all without their endings."""
