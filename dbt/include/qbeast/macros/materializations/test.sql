{# dbt's own, with a word on the samples that it looks at: that a test passes says less then. #}
{% materialization test, adapter='qbeast' %}
  {%- for note in adapter.qbeast_sample_notes(sql, model, graph) -%}
    {% do log(model.name ~ ' ' ~ note, info=true) %}
  {%- endfor -%}
  {{ return(materialization_test_default()) }}
{% endmaterialization %}
